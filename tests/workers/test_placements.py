"""Which host takes a call of a tool that runs on one host."""

import itertools
from collections.abc import Collection

import pytest

from engine.calls.endings import Refused
from engine.calls.placements import Placements
from engine.store.database import Database
from engine.store.hosts import HostClaim, HostTable, HostWork
from engine.store.routes import RouteTable
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.routes import RunState, ToolRoute
from toolagent.contracts.sources import BuiltinSource, LocalSource
from toolagent_service.calls.dispatch import HostLoad, HostStanding, best_host
from toolagent_service.contracts.steps import Placement

_TOOL = ToolEntry(manifest=ToolManifest(tool_id="tool", name="Tool"), sources=(LocalSource(host_dir="tool"),))
_GRAPHICS = ToolEntry(
    manifest=ToolManifest(tool_id="tool", name="Tool", bucket="gpu", category="http"), sources=(LocalSource(host_dir="tool"),)
)
_ANYWHERE = ToolEntry(manifest=ToolManifest(tool_id="echo", name="Echo"), sources=(BuiltinSource(handler="echo"),))


@pytest.mark.parametrize(
    ("alive", "loads", "own", "avoid", "chosen"),
    [
        ("", [], None, None, None),
        ("a", [], "a", "a", "a"),
        ("ab", [], "b", None, "b"),
        ("ab", [], None, None, "a"),
        ("ab", [HostLoad("b", 3, has_it=True)], "a", None, "b"),
        ("ab", [HostLoad("b", 3, has_it=True)], "a", "b", "a"),
        ("a", [HostLoad("b", 3, has_it=True)], "a", None, "a"),
        ("ab", [HostLoad("a", 2), HostLoad("b", 1)], "a", None, "b"),
        ("ab", [HostLoad("a", 9, has_it=True), HostLoad("b", 1, has_it=True)], "a", None, "a"),
        ("abc", [HostLoad("c", 1, has_it=True), HostLoad("b", 2, has_it=True)], "a", None, "c"),
    ],
)
def test_the_rule(alive: str, loads: list[HostLoad], own: str | None, avoid: str | None, chosen: str | None) -> None:
    assert best_host(alive, loads, own, avoid) == chosen


@pytest.mark.parametrize(
    ("loads", "own", "chosen"),
    [
        ([HostLoad("a", share=0.9), HostLoad("b")], "a", "b"),
        ([HostLoad("a", share=0.2), HostLoad("b")], "a", "a"),
        ([HostLoad("a", 1), HostLoad("b", 2, share=0.0)], None, "a"),
        ([HostLoad("a", 1, share=1.0), HostLoad("b", 2)], None, "a"),
        ([HostLoad("a", 1, share=1.0), HostLoad("b", 1)], None, "b"),
        ([HostLoad("a", 1, has_it=True, share=1.0), HostLoad("b")], None, "a"),
        ([HostLoad("a", 1, has_it=True, share=1.0), HostLoad("b", 5, has_it=True, share=0.5)], "a", "b"),
        ([HostLoad("a", 5, has_it=True, share=0.7), HostLoad("b", 1, has_it=True, share=0.6)], "a", "a"),
    ],
)
def test_among_equals_the_one_with_more_free_slots_is_chosen(loads: list[HostLoad], own: str | None, chosen: str) -> None:
    assert best_host("ab", loads, own) == chosen


def test_a_share_is_that_of_the_buckets_own_slots() -> None:
    standing = HostStanding({"default": 4, "gpu": 1}, {"default": 1, "other": 7})
    assert [standing.share_of(bucket) for bucket in ("default", "gpu", "other")] == [0.25, 0.0, 7.0]


@pytest.mark.parametrize(("alive", "avoid", "chosen"), [("ab", None, "b"), ("ab", "b", "b"), ("a", "b", "a")])
def test_a_call_is_made_where_what_it_works_with_is_while_that_host_is_alive(alive: str, avoid: str | None, chosen: str) -> None:
    assert best_host(alive, [HostLoad("a", 1, has_it=True)], "a", avoid, prefer="b") == chosen


async def _alive(database: Database, *names: str, buckets: Collection[str] = ("default",)) -> None:
    for name in names:
        await HostTable(database, 3600).claim(HostClaim(name, name, name, dict.fromkeys(buckets, 1)))


def _placements(database: Database, host: str | None = "a", clock: float = 0.0) -> Placements:
    return Placements(host, {"default": 1}, HostTable(database, 3600), RouteTable(database, 3600), lambda: clock)


async def test_what_can_be_called_from_anywhere_waits_for_no_host(database: Database) -> None:
    await _alive(database, "a", "b")
    assert await _placements(database).choose(_ANYWHERE) == Placement(queue="default")


async def test_tools_that_share_a_process_weigh_as_one(database: Database) -> None:
    routes = RouteTable(database)
    for host, tools in {"a": {"g_one": 7, "g_two": 7, "g_three": 7}, "b": {"one": 1, "two": 2, "far": None, "farther": None}}.items():
        for tool_id, pid in tools.items():
            await routes.save(ToolRoute(tool_id=tool_id, host=host, state=RunState.RUNNING, pid=pid), "1.0.0")
    assert set(await routes.loads("g_two", "1.0.0")) == {HostLoad("a", 1, has_it=True), HostLoad("b", 4)}


async def test_a_tool_goes_where_that_version_of_it_is_up(database: Database) -> None:
    await _alive(database, "a", "b", "c")
    routes = RouteTable(database)
    await routes.save(ToolRoute(tool_id="tool", state=RunState.RUNNING, host="b"), _TOOL.manifest.version)
    await routes.save(ToolRoute(tool_id="tool", state=RunState.RUNNING, host="c"), "0.0.1")
    assert await _placements(database).choose(_TOOL) == Placement(queue="b/default", host="b")
    assert await _placements(database).choose(_TOOL, avoid="b") == Placement(queue="a/default", host="a")


async def test_a_tool_whose_host_died_goes_elsewhere(database: Database) -> None:
    await _alive(database, "a")
    await RouteTable(database).save(ToolRoute(tool_id="tool", state=RunState.RUNNING, host="dead"), _TOOL.manifest.version)
    assert await _placements(database).choose(_TOOL) == Placement(queue="a/default", host="a")


async def test_a_tool_goes_where_its_bucket_is_served(database: Database) -> None:
    await _alive(database, "a", "b")
    await _alive(database, "c", "d", buckets=("default", "gpu"))
    await RouteTable(database).save(ToolRoute(tool_id="tool", state=RunState.RUNNING, host="b"), _GRAPHICS.manifest.version)
    await RouteTable(database).save(ToolRoute(tool_id="other", state=RunState.RUNNING, host="c"), "1.0.0")
    placements = _placements(database)
    assert await placements.choose(_GRAPHICS) == Placement(queue="d/gpu", host="d")
    assert await placements.choose(_GRAPHICS, avoid="d") == Placement(queue="c/gpu", host="c")
    assert await placements.choose(_TOOL) == Placement(queue="b/default", host="b")
    assert await _placements(database, None).host_for(_GRAPHICS) == "d"


async def test_a_bucket_that_only_one_host_serves_is_waited_for_there(database: Database) -> None:
    await _alive(database, "a")
    await _alive(database, "c", buckets=("default", "gpu"))
    assert await _placements(database).choose(_GRAPHICS, avoid="c") == Placement(queue="c/gpu", host="c")


@pytest.mark.parametrize(("served", "queue"), [(("default",), "a/default"), (("default", "http"), "a/http")])
async def test_where_nobody_serves_its_bucket_a_tool_waits_in_one_that_its_host_serves(
    database: Database, served: Collection[str], queue: str
) -> None:
    await _alive(database, "a", buckets=served)
    # The one who decides has more buckets than any host that runs tools.
    door = Placements(None, {"default": 1, "http": 1, "gpu": 1}, HostTable(database, 3600), RouteTable(database, 3600))
    assert await door.choose(_GRAPHICS) == Placement(queue=queue, host="a")


async def test_whoever_runs_no_tools_finds_a_host_or_none(database: Database) -> None:
    assert await _placements(database, None).host_for(_TOOL) is None
    await _alive(database, "b")
    assert await _placements(database, None).host_for(_TOOL) == "b"


async def test_a_host_that_is_new_is_seen_after_a_moment_and_at_once_when_another_one_is_to_be_avoided(database: Database) -> None:
    clock = [0.0]
    placements = Placements("b", {"default": 1}, HostTable(database, 3600), RouteTable(database, 3600), lambda: clock[0])
    assert await placements.host_for(_TOOL) == "b"
    await _alive(database, "a")
    assert await placements.host_for(_TOOL, avoid="b") == "a"
    fresh = Placements("b", {"default": 1}, HostTable(database, 3600), RouteTable(database, 3600), lambda: clock[0])
    assert await fresh.host_for(_TOOL) == "b"
    await _alive(database, "c")
    await RouteTable(database).save(ToolRoute(tool_id="tool", state=RunState.RUNNING, host="c"), _TOOL.manifest.version)
    assert await fresh.host_for(_TOOL) == "b"
    clock[0] = 2.0
    assert await fresh.host_for(_TOOL) == "c"


async def test_a_tool_is_started_where_more_slots_are_free(database: Database) -> None:
    await _alive(database, "a", "b")
    await HostTable(database, 3600).beat(HostClaim("a", "a", "a", {}), HostWork({"default": 1}))
    assert await _placements(database).choose(_TOOL) == Placement(queue="b/default", host="b")


async def test_a_host_that_drains_is_not_chosen_unless_it_has_what_the_call_works_with(database: Database) -> None:
    await _alive(database, "a", "b")
    await RouteTable(database).save(ToolRoute(tool_id="tool", state=RunState.RUNNING, host="b"), _TOOL.manifest.version)
    await HostTable(database, 3600).drain("b")
    placements = _placements(database)
    assert await placements.choose(_TOOL) == Placement(queue="a/default", host="a")
    assert await placements.choose(_TOOL, avoid="a") == Placement(queue="a/default", host="a")
    assert await placements.choose(_TOOL, prefer="b") == Placement(queue="b/default", host="b")
    assert await placements.host_for(_TOOL) == "a"


async def test_where_all_hosts_drain_calls_are_refused_with_the_hosts_and_the_remedy(database: Database) -> None:
    await _alive(database, "a")
    await HostTable(database, 3600).drain("a")
    for placements, entry in itertools.product((_placements(database), _placements(database, None)), (_TOOL, _ANYWHERE)):
        with pytest.raises(Refused, match="hosts drain a --undo") as refusal:
            await placements.choose(entry)
        assert (refusal.value.error.type, refusal.value.error.details) == (ErrorType.UNAVAILABLE, {"sent": False, "draining": ["a"]})
        assert await placements.host_for(entry) is None
    for entry in (_TOOL, _ANYWHERE):
        assert await _placements(database).choose(entry, prefer="a") == Placement(queue="a/default", host="a")


async def test_without_any_host_a_call_waits_for_one(database: Database) -> None:
    assert await _placements(database, None).choose(_ANYWHERE) == Placement(queue="default")
