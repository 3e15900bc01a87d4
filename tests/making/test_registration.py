"""All the tools of a candidate become callable in one moment, or none does."""

from collections.abc import AsyncGenerator
from datetime import UTC, datetime

import pytest_asyncio

from engine.making.registration import Registration
from engine.registry.registry import ToolRegistry
from engine.store.database import Database
from engine.store.evidence import EvidenceTable
from engine.store.groups import GroupTable
from engine.store.routes import RouteTable
from engine.store.tools import ToolTable
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.making import Candidate, Evidence
from toolagent.contracts.manifest import ToolGroup, ToolManifest
from toolagent.contracts.sources import LocalSource

TASK, OTHER = "create_00000001", "create_00000002"
ENTRIES = tuple(
    ToolEntry(manifest=ToolManifest(tool_id=f"notes_{name}", name=name), sources=(LocalSource(host_dir="notes", process="notes"),))
    for name in ("add", "list")
)
CANDIDATE = Candidate(entries=ENTRIES, group=ToolGroup(group_id="notes", name="notes", tool_ids=("notes_add", "notes_list")))


def evidence(task_id: str) -> Evidence:
    return Evidence(task_id=task_id, at=datetime(2026, 11, 21, tzinfo=UTC))


@pytest_asyncio.fixture
async def registry(database: Database) -> AsyncGenerator[ToolRegistry]:
    yield ToolRegistry(ToolTable(database), RouteTable(database))


async def test_several_tools_and_their_group_are_registered_however_often(database: Database, registry: ToolRegistry) -> None:
    registration = Registration(registry, EvidenceTable(database))
    for _ in range(2):
        assert (await registration.register(CANDIDATE, evidence(TASK))).tool_ids == ("notes_add", "notes_list")
    assert await registry.list_ids() == ("notes_add", "notes_list")
    assert await GroupTable(database).list_all() == (CANDIDATE.group,)
    for tool_id in await registry.list_ids():
        assert [one.task_id for one in (await EvidenceTable(database).of_tool(tool_id)).values()] == [TASK]


async def test_where_one_id_is_taken_nothing_of_the_others_is_left(database: Database, registry: ToolRegistry) -> None:
    """Also when the task was let through before: what it asked for last is what counts."""
    registration = Registration(registry, EvidenceTable(database))
    await registry.register(ENTRIES[1].manifest, ENTRIES[1].sources)
    refused = (await registration.register(CANDIDATE, evidence(TASK))).refused
    assert "notes_list" in refused
    assert await registry.list_ids() == ("notes_list",)
    assert await GroupTable(database).list_all() == ()
    assert [await EvidenceTable(database).of_tool(entry.manifest.tool_id) for entry in ENTRIES] == [{}, {}]


async def test_what_another_task_has_made_is_not_written_over(database: Database, registry: ToolRegistry) -> None:
    registration = Registration(registry, EvidenceTable(database))
    assert (await registration.register(CANDIDATE, evidence(OTHER))).tool_ids
    assert "notes_add" in (await registration.register(CANDIDATE, evidence(TASK))).refused
    assert [one.task_id for one in (await EvidenceTable(database).of_tool("notes_add")).values()] == [OTHER]
    await registry.unregister("notes_add")
    await registry.unregister("notes_list")
    assert (await registration.register(CANDIDATE, evidence(TASK))).tool_ids, "an id that is free again"
