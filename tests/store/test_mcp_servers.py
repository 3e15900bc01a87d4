"""The table of MCP servers and their tools, on both kinds of database."""

from datetime import UTC, datetime, timedelta

from engine.store.database import Database
from engine.store.groups import GroupTable
from engine.store.mcp_servers import Definitions, McpServerRows
from engine.store.tools import ToolTable
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import ToolManifest, ToolStatus
from toolagent.contracts.mcp_servers import McpServer, McpServerSpec, WaitingVersion
from toolagent.contracts.sources import McpSource

NOW = datetime(2026, 11, 25, tzinfo=UTC)
SOURCE = McpSource(tool_name="-", command=("x",), process="near", server="near")
NEAR = McpServer(name="near", spec=McpServerSpec(command="x"), registered_at=NOW, attempted_at=NOW)


def entry_of(tool_id: str, definition: str) -> ToolEntry:
    return ToolEntry(manifest=ToolManifest(tool_id=tool_id, name=tool_id, description=definition), sources=(SOURCE,))


def listing(**by_id: str) -> Definitions:
    return Definitions(SOURCE, by_id, entry_of)


async def test_a_server_is_taken_in_asked_again_and_taken_out(database: Database) -> None:
    rows, tools, groups = McpServerRows(database), ToolTable(database), GroupTable(database)
    added = await rows.add(NEAR, listing(a="1", b="1"))
    assert added == (NEAR.model_copy(update={"tool_ids": ("a", "b")}), frozenset())
    assert await rows.add(NEAR, listing(c="1")) is None
    assert added is not None
    renewed = await rows.renew(added[0], listing(a="2", c="1"))
    assert renewed is not None
    server = renewed[0]
    assert (server.tool_ids, server.gone, server.waiting) == (("a", "c"), ("b",), (WaitingVersion(tool_id="a", version="1.1.0"),))
    assert await rows.get("near") == server
    versions = {version.version: (version.status, version.is_active) for version in await tools.versions("a")}
    assert versions == {"1.0.0": (ToolStatus.ACTIVE, True), "1.1.0": (ToolStatus.INACTIVE, False)}
    gone, group = await tools.get("b"), await groups.get("near")
    assert gone is not None
    assert group is not None
    assert (gone.manifest.status, group.tool_ids) == (ToolStatus.UNAVAILABLE, ("a", "c"))
    assert (await rows.remove("near"), await rows.remove("near")) == (3, None)
    assert (await tools.list_ids(), await groups.get("near"), await rows.list_all()) == ((), None, ())


async def test_a_tool_that_comes_later_waits_in_no_list_and_is_forgotten_when_it_goes(database: Database) -> None:
    rows, tools = McpServerRows(database), ToolTable(database)
    added = await rows.add(NEAR.model_copy(update={"refreshed_at": NOW}), listing(a="1"))
    assert added is not None
    assert added[0].waiting == ()
    renewed = await rows.renew(added[0], listing(a="1", b="1", c="1"))
    assert renewed is not None
    waiting = tuple(WaitingVersion(tool_id=tool_id, version="1.0.0", is_new=True) for tool_id in ("b", "c"))
    assert (renewed[0].waiting, [entry.manifest.tool_id for entry in await tools.list_active_versions()]) == (waiting, ["a"])
    assert [tool_id for tool_id, _ in await tools.active_manifests()] == ["a"]
    assert [entry.manifest.tool_id for entry in await tools.list_some(["b", "a"])] == ["a"]
    await tools.activate("b", "1.0.0")
    again = await rows.renew(renewed[0], listing(a="1", b="1"))
    assert again is not None
    assert (again[0].waiting, again[0].gone, await tools.list_ids()) == ((), (), ("a", "b"))
    assert [entry.manifest.tool_id for entry in await tools.list_active_versions()] == ["a", "b"]


async def test_the_first_look_that_succeeds_is_what_was_agreed_to_and_a_trusted_server_is_believed(database: Database) -> None:
    rows, tools = McpServerRows(database), ToolTable(database)
    trusted = McpServerSpec(command="x", trusted=True)
    await rows.bring_in({"near": NEAR.spec, "far": trusted}, ())
    for name, tool_id in (("near", "a"), ("far", "b")):
        server = await rows.get(name)
        assert server is not None
        await rows.renew(server.model_copy(update={"refreshed_at": NOW}), listing(**{tool_id: "1"}))
    far = await rows.get("far")
    assert far is not None
    await rows.renew(far, listing(b="1", c="1"))
    assert [entry.manifest.tool_id for entry in await tools.list_active_versions()] == ["a", "b", "c"]


async def test_a_look_that_comes_late_writes_nothing_over_another_registration(database: Database) -> None:
    rows = McpServerRows(database)
    await rows.add(NEAR, listing(a="1"))
    await rows.remove("near")
    await rows.add(NEAR.model_copy(update={"registered_at": datetime(2026, 11, 26, tzinfo=UTC)}), listing(b="1"))
    assert (await rows.renew(NEAR, listing(a="1")), await rows.note(NEAR)) == (None, False)
    assert await ToolTable(database).list_ids() == ("b",)


async def test_a_look_that_fails_after_another_has_listed_the_tools_takes_nothing_away(database: Database) -> None:
    rows = McpServerRows(database)
    await rows.bring_in({"near": NEAR.spec}, ())
    before = await rows.get("near")
    assert before is not None
    await rows.renew(before.model_copy(update={"refreshed_at": NOW}), listing(a="1"))
    assert await rows.note(before, error="It did not answer.")
    after = await rows.get("near")
    assert after is not None
    assert (after.tool_ids, after.refreshed_at, after.error) == (("a",), NOW, "It did not answer.")


async def test_a_look_that_fails_says_nothing_over_one_that_began_later(database: Database) -> None:
    rows = McpServerRows(database)
    added = await rows.add(NEAR.model_copy(update={"refreshed_at": NOW}), listing(a="1"))
    assert added is not None
    assert await rows.note_failure(NEAR, NOW - timedelta(seconds=1), "It did not answer.")
    assert await rows.get("near") == added[0]
    assert await rows.note_failure(NEAR, NOW, "It did not answer.")
    assert await rows.get("near") == added[0].model_copy(update={"error": "It did not answer."})


async def test_a_group_or_a_tool_of_others_is_not_touched(database: Database) -> None:
    rows, tools = McpServerRows(database), ToolTable(database)
    await tools.put(entry_of("a", "ours"), "registry")
    added = await rows.add(NEAR, listing(a="1", b="1"))
    assert added is not None
    assert (added[0].tool_ids, added[1]) == (("b",), frozenset({"a"}))
    assert (await rows.bring_in({"near": NEAR.spec}, ("near",))).refused == ("near",)
    await rows.remove("near")
    assert await tools.list_ids() == ("a",)


async def test_two_hundred_and_fifty_tools_are_written_in_several_transactions(database: Database) -> None:
    rows = McpServerRows(database)
    added = await rows.add(NEAR, listing(**{f"t{number}": "1" for number in range(250)}))
    assert added is not None
    assert len(added[0].tool_ids) == 250
    assert await rows.source("near") == SOURCE
