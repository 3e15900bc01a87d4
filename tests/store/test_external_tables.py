"""External tables in the database: their tools come, change and go with them, and no other tool does."""

from datetime import UTC, datetime

from engine.store.database import Database
from engine.store.external_tables import ExternalTableRows
from engine.store.tools import ToolTable
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.external_tables import ExternalTable, TableForm
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import RemoteSource

NOW = datetime(2026, 11, 25, tzinfo=UTC)


def table(source: str, **more: object) -> ExternalTable:
    said = {"source": source, "tools_url": "https://a.example", "form": TableForm.KNOWHUB}
    return ExternalTable.model_validate({**said, "registered_at": NOW, "refreshed_at": NOW, "attempted_at": NOW, **more})


def entry(tool_id: str, version: str = "1.0.0") -> ToolEntry:
    source = RemoteSource(remote_url="https://a.example", table=tool_id.partition(":")[0])
    return ToolEntry(manifest=ToolManifest(tool_id=tool_id, name=tool_id, version=version), sources=(source,))


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


async def test_slugs_are_added_to_a_version_once(database: Database) -> None:
    tools = ToolTable(database)
    await tools.put(entry("one"), "registered")
    for _ in range(2):
        await tools.add_slugs("one", "1.0.0", ("b", "a"))
    await tools.add_slugs("one", "9.0.0", ("c",))
    found = await tools.get("one")
    assert found is not None
    assert found.manifest.tool_slug_ids == ("b", "a")
