"""Evidence stays with the judged version, and with no other one of the same number."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
import pytest_asyncio
from pydantic import JsonValue

from engine.registry.export import CatalogExport
from engine.store.database import Database
from engine.store.evidence import EvidenceTable
from engine.store.tools import ToolTable
from tests.registry.importing import importer_of, write_catalog
from toolagent.contracts.backend_runtimes import BackendRuntime
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.making import Evidence
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import RemoteSource

FOUND = Evidence(task_id="create_00000001", at=datetime(2026, 11, 21, tzinfo=UTC))
MADE = ToolEntry(
    manifest=ToolManifest(tool_id="a", name="A", description="Made.", backend_runtime=BackendRuntime.REMOTE),
    sources=(RemoteSource(remote_url="https://example.com/a"),),
)


@pytest_asyncio.fixture
async def store(database: Database) -> Database:
    """Two versions that a task made; the first one is active again."""
    tools = ToolTable(database)
    for version in ("1.1.0", "1.0.0"):
        entry = MADE.model_copy(update={"manifest": MADE.manifest.model_copy(update={"version": version})})
        assert await tools.put_made([(entry, FOUND)]) is None
    return database


async def judged(store: Database) -> list[str]:
    return sorted(await EvidenceTable(store).of_tool("a"))


async def imported(store: Database, folder: Path, changes: dict[str, dict[str, JsonValue]]) -> list[str]:
    """What has evidence after the import of the export: unchanged, or with other entries in these files."""
    exported = await CatalogExport(store).documents()
    write_catalog(folder, exported | changes)
    assert await importer_of(store, folder.parent).run(folder, ()) == ()
    return await judged(store)


async def test_what_comes_back_as_it_was_keeps_its_evidence(store: Database, tmp_path: Path) -> None:
    await ToolTable(store).deactivate("a", "1.1.0")
    assert await imported(store, tmp_path / "data", {}) == ["1.0.0", "1.1.0"]
    assert await imported(store, tmp_path / "data", {}) == ["1.0.0", "1.1.0"]


@pytest.mark.parametrize(
    "changes",
    [
        {"registry.json": {"tools": [{"tool_id": "a", "name": "A", "description": "Another.", "version": "1.0.0"}]}},
        {"sources.json": {"sources": {"a": [{"type": "remote", "remote_url": "https://example.com/b"}]}}},
        {"sources.json": {"sources": {"a": [{"type": "remote", "remote_url": f"https://example.com/{one}"} for one in "ab"]}}},
    ],
)
async def test_another_version_of_the_same_number_has_none(
    store: Database, tmp_path: Path, changes: dict[str, dict[str, JsonValue]]
) -> None:
    assert await imported(store, tmp_path / "data", changes) == ["1.1.0"]


async def test_nor_has_one_that_lies_beside_the_active_one(store: Database, tmp_path: Path) -> None:
    entry: JsonValue = {
        "tool_id": "a",
        "name": "A",
        "version": "1.1.0",
        "sources": [{"type": "remote", "remote_url": "https://example.com/b"}],
    }
    assert await imported(store, tmp_path / "data", {"versions.json": {"versions": {"a": [entry]}}}) == ["1.0.0"]


async def test_nor_has_one_that_somebody_registers_in_its_place(store: Database) -> None:
    tools = ToolTable(store)
    await tools.put(MADE, "test")
    assert await judged(store) == ["1.0.0", "1.1.0"]
    await tools.put(MADE.model_copy(update={"sources": (RemoteSource(remote_url="https://example.com/b"),)}), "test")
    assert await judged(store) == ["1.1.0"]
    other = MADE.manifest.model_copy(update={"version": "1.1.0"})
    await tools.put(MADE.model_copy(update={"manifest": other, "sources": ()}), "test")
    assert await judged(store) == []
