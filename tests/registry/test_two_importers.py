"""Two processes import concurrently on one PostgreSQL without failure or loss; and an outage of the database while files are watched."""

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import IO

import pytest
import structlog
from pydantic import JsonValue

from engine.registry.catalog_watch import imported_catalog
from engine.store.database import Database, migrate
from engine.store.tools import ToolTable
from tests.copies import start_text
from tests.parts import tool_registry
from tests.postgres import PostgresServer
from tests.registry.importing import importer_of, write_catalog
from tests.system.loaded import Process
from tests.system.waiting import wait_until
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.records import CatalogFault

_TIMES = 6
_TOOLS = 120
_BOUND_S = 120.0

# Waits until the other one is there too, then imports again and again, every other time without the last of its tools.
_IMPORTER = """
import asyncio, json, sys, time
from pathlib import Path
from engine.store.database import Database
from tests.registry.importing import importer_of

url, folder, data, name, other, times = sys.argv[1:]

async def main():
    database = Database(url)
    importer = importer_of(database, Path(folder), name)
    (Path(folder) / "there").touch()
    until = time.monotonic() + 60
    while not (Path(other) / "there").exists() and time.monotonic() < until:
        await asyncio.sleep(0.005)
    registry = Path(data) / "registry.json"
    whole = registry.read_text("utf-8")
    for number in range(int(times)):
        document = json.loads(whole)
        for tool in document["tools"]:
            tool["description"] = f"by {name}, {number}"
        own = Path(folder) / "own"
        own.mkdir(exist_ok=True)
        (own / "registry.json").write_text(json.dumps(document), "utf-8")
        (own / "sources.json").write_text((Path(data) / "sources.json").read_text("utf-8"), "utf-8")
        faults = await importer.run(own, ())
        assert faults == (), faults
    await database.close()

asyncio.run(main())
"""


def _catalog(folder: Path, ids: list[str]) -> Path:
    tools: list[JsonValue] = [{"tool_id": one, "name": one} for one in ids]
    sources: dict[str, JsonValue] = {one: [{"type": "remote", "remote_url": "http://127.0.0.1:1"}] for one in ids}
    write_catalog(folder, {"registry.json": {"tools": tools}, "sources.json": {"sources": sources}})
    return folder


@pytest.mark.parametrize("same", [True, False], ids=["the same folder", "different folders"])
def test_two_processes_that_import_at_once_lose_nothing(postgres_url: str, tmp_path: Path, same: bool) -> None:
    ids = {name: [f"{'both' if same or number % 2 else name}_{number}" for number in range(_TOOLS)] for name in ("h1", "h2")}
    children: list[tuple[Process, IO[bytes]]] = []
    for name, other in (("h1", "h2"), ("h2", "h1")):
        (tmp_path / name).mkdir()
        data = _catalog(tmp_path / f"data-{name}", ids[name])
        children.append(start_text(_IMPORTER, postgres_url, str(tmp_path / name), str(data), name, str(tmp_path / other), str(_TIMES)))
    for child, said in children:
        with said:
            assert child.wait(_BOUND_S) == 0
    stored = asyncio.run(_stored(postgres_url))
    assert {entry.manifest.tool_id for entry in stored} == {*ids["h1"], *ids["h2"]}
    assert all(len(entry.sources) == 1 for entry in stored)


async def _stored(url: str) -> tuple[ToolEntry, ...]:
    database = Database(url)
    try:
        return await ToolTable(database).list_active_versions()
    finally:
        await database.close()


async def test_a_change_while_the_database_is_away_is_reported_and_imported_when_it_is_back(
    own_postgres: PostgresServer, tmp_path: Path
) -> None:
    own_postgres.execute("CREATE DATABASE agent")
    url = own_postgres.url("agent")
    await asyncio.to_thread(migrate, url, tmp_path / "migration.lock")
    database, data = Database(url), _catalog(tmp_path / "data", ["a"])
    importer, registry = importer_of(database, tmp_path), tool_registry(database)
    imported = asyncio.Event()

    async def run() -> tuple[CatalogFault, ...]:
        faults = await importer.run(data, ())
        imported.set()
        return faults

    with structlog.testing.capture_logs() as said:
        async with imported_catalog(run, data, tmp_path / "state", watch=True):
            assert await registry.list_ids() == ("a",)
            imported.clear()
            await asyncio.to_thread(own_postgres.stop)
            (data / "registry.json").write_text(json.dumps({"tools": [{"tool_id": one, "name": one} for one in ("a", "b")]}), "utf-8")
            reported = asyncio.to_thread(
                wait_until, lambda: any(one["event"] == "catalog_not_imported" for one in said), "it is reported", 60.0
            )
            await reported
            assert not imported.is_set()
            await asyncio.to_thread(own_postgres.start)
            async with asyncio.timeout(60):
                await imported.wait()
            assert await registry.list_ids() == ("a", "b")
    with suppress(OSError):
        await database.close()
