"""Pinned definitions: changes by a server wait for agreement."""

from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import ToolManifest, ToolStatus
from toolagent.core.catalog.pins import Change, Pinned, appeared, gone, pinned


def entry(description: str, version: str = "1.0.0", status: ToolStatus = ToolStatus.ACTIVE) -> ToolEntry:
    return ToolEntry(manifest=ToolManifest(tool_id="t", name="T", description=description, version=version, status=status))


def kept(definition: str, version: str = "1.0.0", status: ToolStatus = ToolStatus.ACTIVE, *, was_active: bool = True) -> Pinned:
    return Pinned(entry(definition, version, status), definition, was_active)


def test_what_is_as_it_was_changes_nothing() -> None:
    assert pinned("a", {"1.0.0": kept("a")}, "1.0.0", entry) == Change()


def test_a_changed_definition_is_a_version_that_cannot_be_called_yet() -> None:
    new = kept("b", "1.1.0", ToolStatus.INACTIVE, was_active=False)
    assert pinned("b", {"1.0.0": kept("a")}, "1.0.0", entry) == Change((new,), (), "1.1.0")
    assert pinned("b", {"1.0.0": kept("a"), "1.1.0": new}, "1.0.0", entry) == Change((), (), "1.1.0")


def test_a_new_tool_waits_until_it_was_activated() -> None:
    new = kept("a", status=ToolStatus.INACTIVE, was_active=False)
    assert (appeared(entry("a"), "a", waits=True), appeared(entry("a"), "a", waits=False)) == (new, kept("a"))
    assert pinned("a", {"1.0.0": new}, "1.0.0", entry) == Change((), (), "1.0.0")
    changed = kept("b", "1.1.0", ToolStatus.INACTIVE, was_active=False)
    assert pinned("b", {"1.0.0": new}, "1.0.0", entry) == Change((changed,), (), "1.1.0")
    assert pinned("a", {"1.0.0": kept("a")}, "1.0.0", entry) == Change()


def test_of_versions_that_nobody_activated_the_last_stays() -> None:
    waiting = kept("b", "1.1.0", ToolStatus.INACTIVE, was_active=False)
    change = pinned("c", {"1.0.0": kept("a"), "1.1.0": waiting}, "1.0.0", entry)
    assert change == Change((kept("c", "1.2.0", ToolStatus.INACTIVE, was_active=False),), ("1.1.0",), "1.2.0")
    assert pinned("a", {"1.0.0": kept("a"), "1.1.0": waiting}, "1.0.0", entry) == Change((), ("1.1.0",))


def test_a_definition_that_was_left_waits_when_it_comes_back() -> None:
    known = {"1.0.0": kept("a", status=ToolStatus.INACTIVE), "1.1.0": kept("b", "1.1.0")}
    assert pinned("a", known, "1.1.0", entry) == Change((), (), "1.0.0")


def test_what_is_registered_of_the_server_holds_for_every_version_and_no_definition_does() -> None:
    def anew(definition: str) -> ToolEntry:
        old = entry(definition)
        return old.model_copy(update={"manifest": old.manifest.model_copy(update={"timeout_s": 5.0})})

    change = pinned("b", {"1.0.0": kept("a"), "1.1.0": kept("b", "1.1.0", ToolStatus.INACTIVE)}, "1.0.0", anew)
    told = [(one.entry.manifest.version, one.entry.manifest.description, one.entry.manifest.timeout_s) for one in change.write]
    assert told == [("1.0.0", "a", 5.0), ("1.1.0", "b", 5.0)]
    assert change.waiting == "1.1.0"


def test_a_tool_that_vanished_is_unavailable_and_comes_back_unless_somebody_deactivated_it() -> None:
    away = gone(kept("a"))
    assert away == kept("a", status=ToolStatus.UNAVAILABLE)
    assert pinned("a", {"1.0.0": kept("a", status=ToolStatus.UNAVAILABLE)}, "1.0.0", entry) == Change((kept("a"),))
    assert gone(kept("a", status=ToolStatus.INACTIVE)) is None
    assert pinned("a", {"1.0.0": kept("a", status=ToolStatus.INACTIVE)}, "1.0.0", entry) == Change()


def test_what_cannot_be_made_a_tool_any_more_stays_as_it_was() -> None:
    assert pinned("b", {"1.0.0": kept("a")}, "1.0.0", lambda _: None) == Change()
