"""Rollback to the version that was active before, and the evidence of versions."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import JsonValue

from engine.registry.registry import ToolRegistry
from engine.store.database import Database
from engine.store.evidence import EvidenceTable
from tests.parts import tool_registry
from tests.registry.importing import importer_of, write_catalog
from tests.store.making import put_evidence
from toolagent.contracts.making import Evidence
from toolagent.contracts.manifest import ToolManifest, ToolStatus
from toolagent.contracts.sources import BuiltinSource

ECHO = ToolManifest(tool_id="echo", name="Echo", version="1.0.0", category="text")
EVIDENCE = Evidence(task_id="create_00000001", at=datetime(2026, 11, 21, tzinfo=UTC), behaviour="verified")


@pytest.fixture
def registry(database: Database) -> ToolRegistry:
    return tool_registry(database)


async def register(registry: ToolRegistry, *versions: str) -> None:
    for version in versions:
        await registry.register(ECHO.model_copy(update={"version": version}), (BuiltinSource(handler="echo"),))


async def states(registry: ToolRegistry) -> list[tuple[str, ToolStatus, bool]]:
    found = await registry.versions("echo")
    return [(one.version, one.status, one.is_active) for one in found.versions] if found else []


async def test_a_rollback_returns_to_what_was_active_before_and_again_to_what_was_before_that(registry: ToolRegistry) -> None:
    await register(registry, "1.0.0", "1.2.0", "1.1.0", "1.3.0")
    assert [await registry.roll_back("echo") for _ in range(4)] == ["1.1.0", "1.2.0", "1.0.0", None], "the order in time, not of numbers"
    assert await states(registry) == [
        ("1.3.0", ToolStatus.INACTIVE, False),
        ("1.2.0", ToolStatus.INACTIVE, False),
        ("1.1.0", ToolStatus.INACTIVE, False),
        ("1.0.0", ToolStatus.ACTIVE, True),
    ]


async def test_a_version_that_cannot_be_called_is_passed_over(registry: ToolRegistry) -> None:
    await register(registry, "1.0.0", "1.1.0", "1.2.0")
    await registry.deactivate("echo", "1.1.0")
    assert await registry.roll_back("echo") == "1.0.0"


async def test_a_version_that_was_activated_by_hand_counts_from_then(registry: ToolRegistry) -> None:
    await register(registry, "1.0.0", "1.1.0", "1.2.0")
    await registry.activate("echo", "1.0.0")
    assert await registry.roll_back("echo") == "1.2.0"


async def test_a_rollback_that_is_sent_twice_goes_back_once(registry: ToolRegistry) -> None:
    await register(registry, "1.0.0", "1.1.0", "1.2.0")
    for _ in range(2):
        assert await registry.roll_back("echo", "1.2.0") == "1.1.0"


async def test_nobody_returns_to_what_was_never_active(registry: ToolRegistry) -> None:
    assert await registry.roll_back("echo") is None
    await register(registry, "1.0.0")
    assert await registry.roll_back("echo") is None
    assert await states(registry) == [("1.0.0", ToolStatus.ACTIVE, True)]


async def test_evidence_goes_with_its_version(database: Database, registry: ToolRegistry) -> None:
    evidence = EvidenceTable(database)
    await register(registry, "1.0.0")
    for behaviour in ("unverified", "verified"):
        await put_evidence(database, "echo", "1.0.0", EVIDENCE.model_copy(update={"behaviour": behaviour}))
    assert await evidence.of_tool("echo") == {"1.0.0": EVIDENCE}
    assert await evidence.get("echo", "1.1.0") is None
    await registry.destroy("echo")
    await register(registry, "1.0.0")
    assert await evidence.of_tool("echo") == {}


async def test_a_version_that_came_from_a_file_can_be_returned_to(database: Database, registry: ToolRegistry, tmp_path: Path) -> None:
    importer, data = importer_of(database, tmp_path), tmp_path / "data"
    for version in ("1.0.0", "1.1.0"):
        document: dict[str, JsonValue] = {"version": "2.0", "tools": [{"tool_id": "echo", "name": "Echo", "version": version}]}
        write_catalog(data, {"registry.json": document, "sources.json": {"sources": {"echo": [{"type": "local", "host_dir": "tools/e"}]}}})
        assert await importer.run(data, ()) == ()
    await register(registry, "1.2.0")
    assert [await registry.roll_back("echo") for _ in range(3)] == ["1.1.0", "1.0.0", None]
    assert await importer.run(data, ()) == ()
    assert (await states(registry))[-1] == ("1.0.0", ToolStatus.ACTIVE, True), "the file says nothing new"
