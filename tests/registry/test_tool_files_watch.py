"""A change in a folder of tools outside the data folder is imported."""

import asyncio
import json
from pathlib import Path

import pytest

from engine.registry.catalog_watch import imported_catalog
from engine.store.database import Database
from tests.registry.tool_files import ToolFiles, tool_file
from toolagent.contracts.records import CatalogFault

_BOUND_S = 60.0


@pytest.mark.timeout(120)
async def test_a_file_that_is_written_edited_broken_and_removed_is_followed(database: Database, tmp_path: Path) -> None:
    files = ToolFiles(database, tmp_path)
    imports: asyncio.Queue[tuple[CatalogFault, ...]] = asyncio.Queue()

    async def run() -> tuple[CatalogFault, ...]:
        faults = await files.run()
        imports.put_nowait(faults)
        return faults

    async def until(expected: tuple[str | None, set[str]], *, faulty: bool = False) -> None:
        while bool(await imports.get()) is not faulty or await files.versions() != expected:
            pass

    elsewhere = tmp_path / "data-elsewhere"
    elsewhere.mkdir()
    async with imported_catalog(run, elsewhere, tmp_path / "state", watch=True, others=(files.folder,)), asyncio.timeout(_BOUND_S):
        path = files.write("a", tool_file())
        await until(("1.0.0", {"1.0.0"}))
        path.write_text(json.dumps(tool_file(version="2.0.0")), "utf-8")
        await until(("2.0.0", {"2.0.0"}))
        path.write_text("{", "utf-8")
        await until(("2.0.0", {"2.0.0"}), faulty=True)
        path.unlink()
        await until((None, set()))
