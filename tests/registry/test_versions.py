"""Versions side by side, ranges, activation, and what an import keeps of it."""

from pathlib import Path

import pytest
from pydantic import JsonValue

from engine.registry.registry import ToolRegistry
from engine.store.database import Database
from engine.store.events import EventTable
from engine.store.tools import ToolTable
from tests.parts import tool_registry
from tests.registry.importing import importer_of, write_catalog
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import ToolManifest, ToolStatus
from toolagent.validation.versions import NoSuchVersion, NotARangeError

_MANY = 4_000
"""Their rows have more values than either database takes in one statement (32,767)."""
VERSIONS = ("1.0.0", "1.2.0", "1.10.0", "2.0.0-rc.1", "2.0.0", "3.0.0-beta.2")


async def filled(database: Database) -> ToolRegistry:
    registry = tool_registry(database)
    for version in VERSIONS:
        await registry.register(ToolManifest(tool_id="a", name="A", version=version))
    await registry.activate("a", "1.2.0")
    return registry


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (None, "1.2.0"),
        ("1.0.0", "1.0.0"),
        ("2.0.0-rc.1", "2.0.0-rc.1"),
        ("^1.0.0", "1.10.0"),
        ("~1.2", "1.2.0"),
        (">=1.2 <2", "1.10.0"),
        ("<1.2", "1.0.0"),
        ("*", "2.0.0"),
        ("1.x || 2.x", "2.0.0"),
        (">=3.0.0-alpha", "3.0.0-beta.2"),
    ],
)
async def test_a_range_means_the_highest_version_in_it(database: Database, wanted: str | None, found: str) -> None:
    entry = await (await filled(database)).find("a", wanted)
    assert isinstance(entry, ToolEntry)
    assert entry.manifest.version == found


async def test_what_cannot_be_called_is_in_no_range(database: Database) -> None:
    registry = await filled(database)
    await registry.deactivate("a", "1.10.0")
    entry = await registry.entry("a", "^1.0.0")
    assert entry is not None
    assert entry.manifest.version == "1.2.0"
    pinned = await registry.entry("a", "1.10.0")
    assert pinned is not None
    assert pinned.manifest.status is ToolStatus.INACTIVE


@pytest.mark.parametrize("wanted", ["^7", "9.9.9", ">=3"])
async def test_what_matches_nothing_names_what_there_is(database: Database, wanted: str) -> None:
    found = await (await filled(database)).find("a", wanted)
    newest_first = ("3.0.0-beta.2", "2.0.0", "2.0.0-rc.1", "1.10.0", "1.2.0", "1.0.0")
    assert found == NoSuchVersion(newest_first, newest_first, "1.2.0")
    assert await (await filled(database)).find("nothing", wanted) is None


@pytest.mark.parametrize("wanted", ["latest", "^^1", ">=", "\0", "1.2.3.4", "；"])
async def test_what_is_no_range_is_said_to_be_none(database: Database, wanted: str) -> None:
    with pytest.raises(NotARangeError):
        await (await filled(database)).find("a", wanted)


async def test_activating_and_deactivating_say_so_once(database: Database) -> None:
    registry = await filled(database)
    before = len(await EventTable(database).of_tool("a"))
    assert [await registry.activate("a", "2.0.0"), await registry.activate("a", "2.0.0")] == [True, True]
    assert [await registry.deactivate("a", "2.0.0"), await registry.deactivate("a", "2.0.0")] == [True, True]
    assert [await registry.activate("a", "9.0.0"), await registry.deactivate("b", "1.0.0")] == [False, False]
    assert len(await EventTable(database).of_tool("a")) == before + 2
    manifest = await registry.get("a")
    assert manifest is not None
    assert (manifest.version, manifest.status) == ("2.0.0", ToolStatus.INACTIVE)


async def test_a_new_version_becomes_active_and_what_was_decided_survives_until_then(database: Database, tmp_path: Path) -> None:
    registry, importer = tool_registry(database), importer_of(database, tmp_path)

    async def imports(version: str, description: str = "") -> str:
        tool: JsonValue = {"tool_id": "a", "name": "A", "version": version, "description": description}
        write_catalog(tmp_path / "data", {"registry.json": {"tools": [tool]}})
        await importer.run(tmp_path / "data", ())
        versions = await registry.versions("a")
        assert versions is not None
        return versions.active_version

    assert [await imports("1.0.0"), await imports("2.0.0")] == ["1.0.0", "2.0.0"]
    await registry.activate("a", "1.0.0")
    await registry.deactivate("a", "2.0.0")
    assert [await imports("2.0.0"), await imports("2.0.0", "changed")] == ["1.0.0", "1.0.0"]
    changed = await registry.get("a", "2.0.0")
    assert changed is not None
    assert (changed.description, changed.status) == ("changed", ToolStatus.INACTIVE)
    assert await imports("3.0.0") == "3.0.0"
    assert await imports("1.0.0") == "1.0.0"


async def test_catalogs_of_two_hosts_leave_each_others_tools_alone(database: Database, tmp_path: Path) -> None:
    for host, ids in (("h1", ["a", "both"]), ("h2", ["b", "both"])):
        write_catalog(tmp_path / host, {"registry.json": {"tools": [{"tool_id": one, "name": one} for one in ids]}})
        await importer_of(database, tmp_path, host).run(tmp_path / host, ())
    registry = tool_registry(database)
    assert await registry.list_ids() == ("a", "b", "both")
    await importer_of(database, tmp_path, "h3").run(tmp_path / "nothing", ())
    write_catalog(tmp_path / "h1", {"registry.json": {"tools": []}})
    await importer_of(database, tmp_path, "h1").run(tmp_path / "h1", ())
    assert await registry.list_ids() == ("b", "both")


async def test_thousands_of_tools_are_imported_at_once(database: Database, tmp_path: Path) -> None:
    tools: list[JsonValue] = [{"tool_id": f"tool_{number}", "name": "T", "description": "x" * 200} for number in range(_MANY)]
    sources: dict[str, JsonValue] = {f"tool_{number}": [{"type": "remote", "remote_url": "http://127.0.0.1:1"}] for number in range(_MANY)}
    write_catalog(tmp_path / "data", {"registry.json": {"tools": tools}, "sources.json": {"sources": sources}})
    importer = importer_of(database, tmp_path)
    assert await importer.run(tmp_path / "data", ()) == ()
    assert await importer.run(tmp_path / "data", ()) == ()
    assert len(await ToolTable(database).list_ids()) == _MANY
