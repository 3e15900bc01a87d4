"""An error that ends the watch of the catalog is logged, and the watch begins again."""

import asyncio
import os
from pathlib import Path

import structlog
from pydantic import JsonValue

from engine.registry.catalog_watch import imported_catalog
from engine.store.database import Database
from engine.store.tools import ToolTable
from tests.registry.importing import importer_of, write_catalog
from toolagent.contracts.records import CatalogFault


class _UnforeseenError(RuntimeError):
    pass


async def test_a_watch_that_dies_is_reported_with_its_cause_and_begins_again(database: Database, tmp_path: Path) -> None:
    importer, data = importer_of(database, tmp_path), tmp_path / "data"
    write_catalog(data, {"registry.json": {"tools": [{"tool_id": "a", "name": "a"}]}})
    imports, again = iter(range(9)), asyncio.Event()

    async def run() -> tuple[CatalogFault, ...]:
        number = next(imports)
        if number == 1:
            raise _UnforeseenError("nobody thought of this")
        faults = await importer.run(data, ())
        if number > 1:
            again.set()
        return faults

    with structlog.testing.capture_logs() as said:
        async with imported_catalog(run, data, tmp_path / "state", watch=True, restart_s=0.01):
            write_catalog(data, {"registry.json": {"tools": [{"tool_id": "b", "name": "b"}]}})
            async with asyncio.timeout(60):
                await again.wait()
    assert await ToolTable(database).list_ids() == ("b",)
    [ended] = [one for one in said if one["event"] == "catalog_watch_ended"]
    assert (ended["log_level"], "nobody thought of this" in ended["cause"]) == ("error", True)


async def test_an_import_that_is_under_way_when_the_service_stops_has_ended_afterwards(database: Database, tmp_path: Path) -> None:
    data, running, ended = tmp_path / "data", asyncio.Event(), asyncio.Event()
    write_catalog(data, {"registry.json": {"tools": []}})
    imports = iter(range(9))

    async def run() -> tuple[CatalogFault, ...]:
        if next(imports) == 0:
            return ()
        running.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ()

    async with imported_catalog(run, data, tmp_path / "state", watch=True):
        write_catalog(data, {"registry.json": {"tools": [{"tool_id": "b", "name": "b"}]}})
        async with asyncio.timeout(60):
            await running.wait()
    assert ended.is_set()


async def test_a_name_that_is_not_utf_8_holds_up_no_change(database: Database, tmp_path: Path) -> None:
    importer, data, again = importer_of(database, tmp_path), tmp_path / "data", asyncio.Event()
    write_catalog(data, {"registry.json": {"tools": []}})

    async def run() -> tuple[CatalogFault, ...]:
        faults = await importer.run(data, ())
        again.set()
        return faults

    async def imported(*ids: str) -> None:
        while await ToolTable(database).list_ids() != ids:
            await again.wait()
            again.clear()

    with structlog.testing.capture_logs() as said:
        async with imported_catalog(run, data, tmp_path / "state", watch=True, restart_s=3600), asyncio.timeout(60):
            write_catalog(data, {"registry.json": {"tools": [{"tool_id": "a", "name": "a"}]}})
            await imported("a")
            await asyncio.to_thread(Path(os.fsdecode(os.fsencode(data) + b"/caf\xe9.txt")).touch)
            write_catalog(data, {"registry.json": {"tools": [{"tool_id": "b", "name": "b"}]}})
            await imported("b")
            write_catalog(data, {"registry.json": {"tools": [{"tool_id": "c", "name": "c"}]}})
            await imported("c")
    assert [one["event"] for one in said if one["event"].startswith("catalog_watch")] == []


async def test_links_in_a_circle_do_not_end_the_watching(database: Database, tmp_path: Path) -> None:
    importer, data, again = importer_of(database, tmp_path), tmp_path / "data", asyncio.Event()
    tool: dict[str, JsonValue] = {"tool_id": "a", "name": "a"}
    write_catalog(data, {"registry.json": {"tools": [tool]}, "sources.json": {"sources": {"a": [{"type": "local", "host_dir": "a"}]}}})
    (data / "a").mkdir()
    (data / "a" / "main.py").write_text("", "utf-8")
    found: list[CatalogFault] = []

    async def run() -> tuple[CatalogFault, ...]:
        faults = await importer.run(data, ())
        found[:] = faults
        again.set()
        return faults

    async def imported_with(*fields: str) -> None:
        again.clear()
        while tuple(fault.field for fault in found) != fields:
            await again.wait()
            again.clear()

    async with imported_catalog(run, data, tmp_path / "state", watch=True), asyncio.timeout(60):
        again.clear()
        # Seen at the latest when the watch stands; what happens to a project is only seen from then on.
        write_catalog(data, {"registry.json": {"tools": [{**tool, "description": "new"}]}})
        await again.wait()
        (data / "a" / "loop.py").symlink_to("loop.py")
        await imported_with("$.sources.a")
        (data / "a" / "loop.py").unlink()
        await imported_with()
