"""A change of the catalog's files is imported while the service runs."""

import asyncio
import json
import shutil
from collections.abc import Callable
from pathlib import Path

from engine.registry.catalog_watch import imported_catalog
from engine.store.database import Database
from engine.store.faults import FaultTable
from tests.parts import tool_registry
from tests.registry.importing import importer_of, write_catalog
from toolagent.contracts.records import CatalogFault
from toolagent.contracts.sources import LocalSource


def tools(*ids: str) -> str:
    return json.dumps({"tools": [{"tool_id": one, "name": one} for one in ids]})


class Watched:
    """A watched folder, and its imports one by one."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.data, self.state = folder / "data", folder / "state"
        self.registry = tool_registry(database)
        self._importer = importer_of(database, folder)
        self._imported = asyncio.Condition()

    async def run(self) -> tuple[CatalogFault, ...]:
        faults = await self._importer.run(self.data, ())
        async with self._imported:
            self._imported.notify_all()
        return faults

    async def until(self, ids: tuple[str, ...]) -> None:
        async with asyncio.timeout(40), self._imported:
            while await self.registry.list_ids() != ids:
                await self._imported.wait()

    async def next_import(self, change: Callable[[], object]) -> None:
        async with asyncio.timeout(40), self._imported:
            change()
            await self._imported.wait()


async def test_edits_replacements_and_removals_are_imported_and_broken_ones_change_nothing(database: Database, tmp_path: Path) -> None:
    watched = Watched(database, tmp_path)
    registry = watched.data / "registry.json"
    write_catalog(watched.data, {"registry.json": json.loads(tools("a"))})
    async with imported_catalog(watched.run, watched.data, watched.state, watch=True):
        assert await watched.registry.list_ids() == ("a",)
        registry.write_text(tools("a", "b"), "utf-8")
        await watched.until(("a", "b"))
        (tmp_path / "new.json").write_text(tools("b", "c"), "utf-8")
        (tmp_path / "new.json").replace(registry)
        await watched.until(("b", "c"))
        await watched.next_import(lambda: registry.write_text(tools("d")[:-9], "utf-8"))
        assert await watched.registry.list_ids() == ("b", "c")
        assert [fault.field for fault in await FaultTable(database).list_all()] == ["$"]
        await watched.next_import(registry.unlink)
        assert await watched.registry.list_ids() == ("b", "c")
        await asyncio.to_thread(shutil.rmtree, watched.data)
        write_catalog(watched.data, {"registry.json": json.loads(tools("e"))})
        await watched.until(("e",))


async def test_a_changed_project_gets_a_new_archive(database: Database, tmp_path: Path) -> None:
    watched = Watched(database, tmp_path)
    main = watched.data / "tools" / "a" / "main.py"
    write_catalog(
        watched.data,
        {"registry.json": json.loads(tools("a")), "sources.json": {"sources": {"a": [{"type": "local", "host_dir": "tools/a"}]}}},
    )
    main.parent.mkdir(parents=True)
    main.write_text("print(1)", "utf-8")

    async def content() -> str | None:
        entry = await watched.registry.entry("a")
        assert entry is not None
        assert isinstance(entry.sources[0], LocalSource)
        return entry.sources[0].content

    contents: asyncio.Queue[str | None] = asyncio.Queue()

    async def imported() -> tuple[CatalogFault, ...]:
        faults = await watched.run()
        if main.read_text("utf-8") == "print(1)":
            # In the moment between the first import and the watch.
            main.write_text("print(2) # changed", "utf-8")
        await contents.put(await content())
        return faults

    async with imported_catalog(imported, watched.data, watched.state, watch=True), asyncio.timeout(80):
        first, second = await contents.get(), await contents.get()
        main.write_text("print(3) # changed once more", "utf-8")
        assert len({first, second, await contents.get()}) == 3
