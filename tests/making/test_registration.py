"""All tools of a candidate become callable at once, or none does; obstacles are told before the build."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

import pytest
import pytest_asyncio

from engine.making.maker import Maker, MakerParts
from engine.making.registration import Registration
from engine.registry.registry import ToolRegistry
from engine.store.database import Database
from engine.store.evidence import EvidenceTable
from engine.store.groups import GroupTable
from tests.parts import tool_registry
from tests.runtimes.conftest import silent
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.making import Candidate, Evidence
from toolagent.contracts.manifest import ToolGroup, ToolManifest
from toolagent.contracts.sources import LocalSource
from toolagent.contracts.task_specs import BuildTool, GithubDeploy, RepairTool, TaskSpec
from toolagent_service.contracts.making_steps import Inspected, TaskStep

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
    yield tool_registry(database)


async def test_several_tools_and_their_group_are_registered_however_often(database: Database, registry: ToolRegistry) -> None:
    registration = Registration(registry, GroupTable(database), EvidenceTable(database))
    for _ in range(2):
        assert (await registration.register(CANDIDATE, evidence(TASK))).tool_ids == ("notes_add", "notes_list")
    assert await registry.list_ids() == ("notes_add", "notes_list")
    assert await GroupTable(database).list_all() == (CANDIDATE.group,)
    for tool_id in await registry.list_ids():
        assert [one.task_id for one in (await EvidenceTable(database).of_tool(tool_id)).values()] == [TASK]


async def test_where_one_id_is_taken_nothing_of_the_others_is_left(database: Database, registry: ToolRegistry) -> None:
    """Also if the task was let through before: the last check decides."""
    registration = Registration(registry, GroupTable(database), EvidenceTable(database))
    await registry.register(ENTRIES[1].manifest, ENTRIES[1].sources)
    refused = (await registration.register(CANDIDATE, evidence(TASK))).refused
    assert "notes_list" in str(refused)
    assert await registry.list_ids() == ("notes_list",)
    assert await GroupTable(database).list_all() == ()
    assert [await EvidenceTable(database).of_tool(entry.manifest.tool_id) for entry in ENTRIES] == [{}, {}]


async def test_what_another_task_has_made_is_not_written_over(database: Database, registry: ToolRegistry) -> None:
    registration = Registration(registry, GroupTable(database), EvidenceTable(database))
    assert (await registration.register(CANDIDATE, evidence(OTHER))).tool_ids
    assert "notes_add" in str((await registration.register(CANDIDATE, evidence(TASK))).refused)
    assert [one.task_id for one in (await EvidenceTable(database).of_tool("notes_add")).values()] == [OTHER]
    await registry.destroy("notes_add")
    await registry.destroy("notes_list")
    assert (await registration.register(CANDIDATE, evidence(TASK))).tool_ids, "an id that is free again"


def others(*tool_ids: str) -> tuple[Candidate, ToolEntry]:
    """A group of the same name with other tools, and the first of these."""
    entry = ToolEntry(manifest=ToolManifest(tool_id=tool_ids[0], name="x"), sources=(LocalSource(host_dir="x"),))
    return Candidate(entries=(entry,), group=ToolGroup(group_id="notes", name="Mine", tool_ids=tool_ids)), entry


async def test_a_group_with_tools_of_somebody_else_is_not_written_over(database: Database, registry: ToolRegistry) -> None:
    registration = Registration(registry, GroupTable(database), EvidenceTable(database))
    theirs, entry = others("notes_find", "notes_gone")
    assert (await registration.register(theirs, evidence(OTHER))).tool_ids
    refused = (await registration.register(CANDIDATE, evidence(TASK))).refused
    assert ("group 'notes'" in str(refused), await registry.list_ids()) == (True, ("notes_find",))
    assert await GroupTable(database).list_all() == (theirs.group,)
    assert await EvidenceTable(database).of_tool("notes_add") == {}
    # Its tools are gone, so it is nobody's.
    await registry.destroy(entry.manifest.tool_id)
    assert (await registration.register(CANDIDATE, evidence(TASK))).tool_ids


async def test_a_group_of_a_file_is_not_written_over(database: Database, registry: ToolRegistry) -> None:
    theirs = ToolGroup(group_id="notes", name="Mine")
    await GroupTable(database).bring_in([(theirs, "{}")], ())
    registration = Registration(registry, GroupTable(database), EvidenceTable(database))
    assert "group 'notes'" in str((await registration.register(CANDIDATE, evidence(TASK))).refused)
    assert await GroupTable(database).list_all() == (theirs,)


async def test_a_repository_whose_tools_can_all_be_called_is_made_already(database: Database, registry: ToolRegistry) -> None:
    registration = Registration(registry, GroupTable(database), EvidenceTable(database))
    again = GithubDeploy(repo_url="https://host/notes", tool_name="notes")
    assert await registration.made_already(again) == ()
    await registration.register(CANDIDATE, evidence(TASK))
    assert await registration.made_already(again) == ("notes_add", "notes_list")
    # Who wants one tool is not served by a group that has its name.
    assert await registration.made_already(BuildTool(tool_name="notes", description="d")) == ()
    assert await registration.made_already(again.model_copy(update={"tool_name": "notes_add"})) == ("notes_add",)
    await registry.deactivate("notes_list", "1.0.0")
    assert await registration.made_already(again) == ()


NOTES = GithubDeploy(repo_url="https://host/notes", tool_name="notes")
FIND = BuildTool(tool_name="notes_find", description="d")


@dataclass
class Parts:
    """The parts of MakerParts that are used before anything is cloned."""

    registration: Registration


async def inspected(registration: Registration, spec: TaskSpec) -> Inspected:
    maker = Maker(cast("MakerParts", Parts(registration)))
    return await maker.inspect(TaskStep(task_id=TASK, spec=spec), silent)


async def test_a_tool_that_is_not_active_is_refused_before_anything_is_built(database: Database, registry: ToolRegistry) -> None:
    registration = Registration(registry, GroupTable(database), EvidenceTable(database))
    assert await inspected(registration, FIND) == Inspected()
    theirs, entry = others("notes_find")
    await registration.register(theirs, evidence(OTHER))
    assert (await inspected(registration, FIND)).answered_by == "notes_find"
    await registry.deactivate("notes_find", entry.manifest.version)
    refused = (await inspected(registration, FIND)).refused
    assert "'notes_find' already, and it is inactive" in str(refused)
    for remedy in ("POST /tools/notes_find/versions/1.0.0/activate", "DELETE /tools/notes_find", "another tool_name"):
        assert remedy in str(refused)
    assert "'notes_find' already" in str((await inspected(registration, NOTES.model_copy(update={"tool_name": "notes_find"}))).refused)
    assert await registration.in_the_way(TASK, RepairTool(tool_id="notes_find")) == ""
    assert await registration.in_the_way(OTHER, FIND) == "", "what the task has made itself is in nobody's way"


@pytest.mark.parametrize("is_removed", [True, False])
async def test_a_group_of_which_not_all_can_be_called_is_refused_before_anything_is_built(
    database: Database, registry: ToolRegistry, *, is_removed: bool
) -> None:
    registration = Registration(registry, GroupTable(database), EvidenceTable(database))
    await registration.register(CANDIDATE, evidence(OTHER))
    await (registry.destroy("notes_list") if is_removed else registry.deactivate("notes_list", "1.0.0"))
    refused = (await inspected(registration, NOTES)).refused
    assert f"(notes_add is active; notes_list is {'not there' if is_removed else 'inactive'})" in str(refused)
    assert "another tool_name" in str(refused)
    assert await registration.in_the_way(TASK, NOTES.model_copy(update={"tool_name": "other"})) == ""
    await registry.destroy("notes_add")
    await registry.destroy("notes_list")
    assert await registration.in_the_way(TASK, NOTES) == "", "its tools are gone, so it is nobody's"


async def test_a_group_of_a_file_is_in_the_way_from_the_beginning(database: Database, registry: ToolRegistry) -> None:
    await GroupTable(database).bring_in([(ToolGroup(group_id="notes", name="Mine"), "{}")], ())
    registration = Registration(registry, GroupTable(database), EvidenceTable(database))
    assert "file of groups" in str((await inspected(registration, NOTES)).refused)
