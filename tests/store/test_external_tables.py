"""External tables in the database: their tools are added, changed and removed with them, and no other tool is."""

import asyncio
from datetime import UTC, datetime

from engine.store.database import Database
from engine.store.external_tables import ExternalTableRows
from engine.store.tools import ToolTable
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.external_tables import ExternalTable, TableForm
from toolagent.contracts.manifest import ToolManifest, ToolStatus
from toolagent.contracts.sources import RemoteSource

NOW = datetime(2026, 11, 25, tzinfo=UTC)


def table(source: str, **more: object) -> ExternalTable:
    said = {"source": source, "tools_url": "https://a.example", "form": TableForm.KNOWHUB}
    return ExternalTable.model_validate({**said, "registered_at": NOW, "refreshed_at": NOW, "attempted_at": NOW, **more})


def entry(tool_id: str, version: str = "1.0.0", status: ToolStatus = ToolStatus.ACTIVE) -> ToolEntry:
    source = RemoteSource(remote_url="https://a.example", table=tool_id.partition(":")[0])
    return ToolEntry(manifest=ToolManifest(tool_id=tool_id, name=tool_id, version=version, status=status), sources=(source,))


async def test_tools_come_change_and_go_with_their_table(database: Database) -> None:
    rows, tools = ExternalTableRows(database), ToolTable(database)
    await tools.put(entry("a_b:ours"), "registered")
    assert await rows.add(table("a_b"), [entry("a_b:one"), entry("a_b:two")])
    assert await rows.add(table("axb"), [entry("axb:one")])
    assert not await rows.add(table("a_b"), [entry("a_b:three")])
    assert await rows.taken("a_b") == {"a_b:ours"}
    changed = table("a_b", error="It answered 500.")
    assert await rows.renew(changed, [entry("a_b:one", "2.0.0")])
    assert [one.version for one in await tools.versions("a_b:one")] == ["2.0.0"]
    assert await rows.get("a_b") == changed
    assert await rows.list_all() == (changed, table("axb"))
    assert await rows.remove("a_b") == 1
    assert (await rows.remove("a_b"), await rows.renew(changed, [entry("a_b:one")])) == (None, False)
    assert await tools.list_ids() == ("a_b:ours", "axb:one")


async def test_a_table_that_is_registered_anew_brings_back_what_was_removed(database: Database) -> None:
    rows, tools = ExternalTableRows(database), ToolTable(database)
    await rows.add(table("far"), [entry("far:one")])
    await tools.remove("far:one")
    await rows.renew(table("far"), [entry("far:one")])
    assert await tools.list_ids() == ()
    assert await rows.remove("far") == 0
    await rows.add(table("far"), [entry("far:one")])
    assert await tools.list_ids() == ("far:one",)


async def test_what_was_fetched_of_a_table_does_not_go_to_another_of_its_name(database: Database) -> None:
    rows, tools = ExternalTableRows(database), ToolTable(database)
    await rows.add(table("far"), [entry("far:one")])
    await rows.remove("far")
    anew = table("far", registered_at=NOW.replace(hour=1))
    await rows.add(anew, [entry("far:two")])
    assert not await rows.renew(table("far"), [entry("far:one")])
    assert (await rows.get("far"), await tools.list_ids()) == (anew, ("far:two",))


async def test_a_status_is_what_the_table_says_until_somebody_decides_otherwise(database: Database) -> None:
    rows, tools = ExternalTableRows(database), ToolTable(database)
    found: list[ToolStatus] = []

    async def renew(version: str, status: ToolStatus) -> None:
        await rows.renew(table("far"), [entry("far:one", version, status)])
        stored = await tools.get("far:one")
        assert stored is not None
        found.append(stored.manifest.status)

    await rows.add(table("far"), [entry("far:one")])
    await renew("1.0.0", ToolStatus.INACTIVE)
    await renew("1.0.0", ToolStatus.ACTIVE)
    await tools.deactivate("far:one", "1.0.0")
    await renew("1.0.0", ToolStatus.ACTIVE)
    await renew("2.0.0", ToolStatus.ACTIVE)
    assert found == [ToolStatus.INACTIVE, ToolStatus.ACTIVE, ToolStatus.INACTIVE, ToolStatus.INACTIVE]


async def test_others_write_while_many_tools_are_taken_in(database: Database) -> None:
    rows, tools = ExternalTableRows(database), ToolTable(database)
    taking = asyncio.create_task(rows.add(table("far"), [entry(f"far:t{number}") for number in range(250)]))
    seen = set[int]()
    while not taking.done():
        await tools.put(entry("ours"), "registered")
        seen.add(len(await tools.list_ids("external:far")))
    assert await taking
    assert any(0 < count < 250 for count in seen)
    assert len(await tools.list_ids("external:far")) == 250


async def test_slugs_are_added_to_a_version_once(database: Database) -> None:
    tools = ToolTable(database)
    await tools.put(entry("one"), "registered")
    for _ in range(2):
        await tools.add_slugs("one", "1.0.0", ("b", "a"))
    await tools.add_slugs("one", "9.0.0", ("c",))
    found = await tools.get("one")
    assert found is not None
    assert found.manifest.tool_slug_ids == ("b", "a")
