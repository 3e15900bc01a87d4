"""The tables of tools, versions and sources."""

import asyncio
from collections.abc import Callable, Coroutine

import pytest
from sqlalchemy import text

from engine.store.catalog_files import CATALOG
from engine.store.database import Database
from engine.store.rows.version_rows import NewVersion, write_versions
from engine.store.tools import ToolTable
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import ToolManifest, ToolStatus
from toolagent.contracts.sources import LocalSource, RemoteSource

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


async def test_a_removed_tool_is_gone_with_its_versions_and_sources(database: Database) -> None:
    tools = ToolTable(database)
    await tools.put(entry(), "test")
    assert await tools.remove("ns:x") == (1, 2)
    assert (await tools.get("ns:x"), await tools.list_ids(), await tools.versions("ns:x")) == (None, (), ())
    assert await tools.remove("ns:x") == (0, 0)


@pytest.mark.parametrize("decide", [ToolTable.deactivate, ToolTable.activate])
async def test_what_an_import_writes_at_the_same_moment_as_somebody_decides_is_not_lost(
    postgres_url: str, decide: Callable[[ToolTable, str, str], Coroutine[None, None, bool]]
) -> None:
    database = Database(postgres_url)
    tools, before = ToolTable(database), ToolStatus.ACTIVE if decide is ToolTable.deactivate else ToolStatus.INACTIVE
    first = entry().model_copy(update={"manifest": entry().manifest.model_copy(update={"status": before})})
    await tools.put(first, "test")
    async with database.write(alone=CATALOG) as importing:
        news = first.manifest.model_copy(update={"description": "as the file says now"})
        await write_versions(importing, [NewVersion(ToolEntry(manifest=news, sources=SOURCES))])
        deciding = asyncio.create_task(decide(tools, "ns:x", "1.0.0"))
        await _until_somebody_waits(database)
    assert await deciding
    found = await tools.get("ns:x")
    assert found is not None
    assert found.manifest.description == "as the file says now"
    assert found.manifest.status is not before
    await database.close()


async def _until_somebody_waits(database: Database) -> None:
    async with asyncio.timeout(60):
        while True:
            async with database.read() as connection:
                if (await connection.execute(text("SELECT count(*) FROM pg_locks WHERE NOT granted"))).scalar_one():
                    return
            await asyncio.sleep(0.02)


async def test_putting_a_removed_tool_brings_it_back(database: Database) -> None:
    tools = ToolTable(database)
    await tools.put(entry(), "test")
    await tools.remove("ns:x")
    await tools.put(entry("1.1.0"), "test")
    assert await tools.list_ids() == ("ns:x",)
    assert await tools.get("ns:x", "1.0.0") is None
