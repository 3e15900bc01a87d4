"""The tables of tools, versions and sources."""

from engine.store.database import Database
from engine.store.tools import ToolTable
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import BuiltinSource, LocalSource, RemoteSource

SOURCES = (LocalSource(host_dir="tools/local/x"), RemoteSource(remote_url="http://127.0.0.1:1", remote_api_key="secret:KEY"))


def entry(version: str = "1.0.0", tool_id: str = "ns:x") -> ToolEntry:
    return ToolEntry(manifest=ToolManifest(tool_id=tool_id, name="工具", version=version), sources=SOURCES)


async def test_what_was_put_comes_back(database: Database) -> None:
    tools = ToolTable(database)
    await tools.put(entry(), "test")
    assert await tools.get("ns:x") == entry()
    assert await tools.get("ns:y") is None


async def test_versions_stand_side_by_side_and_the_last_one_put_is_active(database: Database) -> None:
    tools = ToolTable(database)
    await tools.put(entry("1.0.0"), "test")
    await tools.put(entry("2.0.0"), "test")
    assert await tools.get("ns:x") == entry("2.0.0")
    assert await tools.get("ns:x", "1.0.0") == entry("1.0.0")
    assert await tools.list_active_versions() == (entry("2.0.0"),)


async def test_sources_keep_their_order_and_are_replaced_whole(database: Database) -> None:
    tools = ToolTable(database)
    await tools.put(entry(), "test")
    await tools.put_sources("ns:x", "1.0.0", (BuiltinSource(handler="echo"),))
    found = await tools.get("ns:x")
    assert found is not None
    assert found.sources == (BuiltinSource(handler="echo"),)


async def test_a_removed_tool_leaves_a_mark_and_an_erased_one_none(database: Database) -> None:
    tools = ToolTable(database)
    await tools.put(entry(), "test")
    assert await tools.remove("ns:x") == (1, 2)
    assert (await tools.get("ns:x"), await tools.list_ids(), await tools.removed_version("ns:x")) == (None, (), "1.0.0")
    await tools.erase("ns:x")
    assert await tools.removed_version("ns:x") is None


async def test_putting_a_removed_tool_brings_it_back(database: Database) -> None:
    tools = ToolTable(database)
    await tools.put(entry(), "test")
    await tools.remove("ns:x")
    await tools.put(entry("1.1.0"), "test")
    assert await tools.list_ids() == ("ns:x",)
    assert await tools.get("ns:x", "1.0.0") is None
