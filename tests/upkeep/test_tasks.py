"""Tasks without a workflow end, and tasks that ended or moved leave the host: on a real Temporal server."""

import asyncio
import errno
import uuid
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from pydantic import JsonValue
from sqlalchemy import update
from temporalio.client import Client, WorkflowFailureError
from temporalio.worker import Worker

from engine.making.workbench.bench import Workbenches
from engine.runtimes.environments.cache import mark, reserve
from engine.runtimes.environments.environments import ScriptEnvironments
from engine.store import tables
from engine.store.clock import now
from engine.store.database import Database
from engine.store.evidence import EvidenceTable
from engine.store.task_notes import TaskNoteTable
from engine.store.tasks import TaskTable
from engine.store.tools import ToolTable
from engine.upkeep.removal.tasks import TaskSweep, sweeping_tasks
from tests.making.workbench.conftest import bench_parts
from toolagent.client import names
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.making import Evidence, MakeRequest, MakeTask, TaskNoteKind
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.task_specs import BuildTool
from toolagent.contracts.tasks import TaskState
from workers.temporal.workflow_ends import WorkflowEnds
from workflows.making.create_tool import CreateTool

SPEC = BuildTool(tool_name="word_counter", description="Count.")


@dataclass(frozen=True, slots=True)
class Place:
    """The host `here`, whose tasks have folders."""

    client: Client
    database: Database
    tasks: TaskTable
    notes: TaskNoteTable
    tools: ToolTable
    evidence: EvidenceTable
    benches: Workbenches
    environments: ScriptEnvironments
    folder: Path

    @property
    def sweep(self) -> TaskSweep:
        return TaskSweep(WorkflowEnds(self.client), self.tasks, self.evidence, self.benches, self.environments, "here")

    async def begun(self, *, given: JsonValue = "a task", with_workflow: bool = True) -> str:
        """A task in progress that no process continues. `given` is the input of its workflow, or nothing."""
        task_id = f"create_{uuid.uuid4().hex[:8]}"
        if with_workflow:
            given = MakeRequest(task_id=task_id, spec=SPEC).model_dump(mode="json") if given else None
            await self.client.start_workflow(names.CREATE_TOOL, given, id=task_id, task_queue=f"nobody-{task_id}")
        await self.tasks.create(MakeTask(task_id=task_id, status=TaskState.PENDING, spec=SPEC, tool_id="word_counter", created_at=now()))
        assert await self.tasks.claim_slot(task_id, 9, "here")
        await self.benches.of(task_id)
        return task_id

    async def state(self, task_id: str) -> tuple[TaskState, bool]:
        """Its state, and whether something of it is here."""
        task = await self.tasks.get(task_id)
        assert task is not None
        return task.status, (self.folder / task_id).exists()

    def environment_for(self, task_id: str) -> Path:
        """An environment made for it, and not used yet."""
        root = self.folder.parents[1] / "environments" / (task_id[-8:] * 4)
        root.mkdir(parents=True)
        reserve(root, task_id)
        mark(root, [])
        return root


@pytest_asyncio.fixture
async def place(temporal: Client, database: Database, tmp_path: Path) -> AsyncGenerator[Place]:
    async with bench_parts(tmp_path / "state") as parts:
        folder = tmp_path / "state/making"
        benches = Workbenches(folder, parts, "The tests have no engine.")
        tables = (TaskTable(database), TaskNoteTable(database), ToolTable(database), EvidenceTable(database))
        environments = ScriptEnvironments(tmp_path / "environments", parts.executor, parts.programs, parts.installer)
        yield Place(temporal, database, *tables, benches, environments, folder)
        await benches.close()


async def test_a_task_whose_workflow_was_terminated_ends_and_gives_its_slot_back(place: Place) -> None:
    task_id, other = await place.begun(), await place.begun()
    gone, stays = place.environment_for(task_id), place.environment_for(other)
    await place.client.get_workflow_handle(task_id).terminate("by a person")
    waiting = f"create_{uuid.uuid4().hex[:8]}"
    await place.tasks.create(MakeTask(task_id=waiting, status=TaskState.PENDING, spec=SPEC, tool_id="word_counter", created_at=now()))
    await place.client.start_workflow(names.CREATE_TOOL, None, id=waiting, task_queue=f"nobody-{waiting}")
    assert await place.tasks.claim_slot(waiting, 2) is False
    await place.sweep.run()
    assert await place.state(task_id) == (TaskState.FAILED, False)
    assert await place.state(other) == (TaskState.RUNNING, True)
    assert (gone.exists(), stays.exists()) == (False, True)
    ended = await place.tasks.get(task_id)
    assert ended is not None
    assert ended.reason == "Its workflow was terminated on Temporal. Nothing it made can be called. Ask for it again."
    assert TaskNoteKind.TOOL_ERROR in [note.kind for note in await place.notes.after(task_id)]
    assert await place.tasks.claim_slot(waiting, 2) is True
    for each in (other, waiting):
        await place.client.get_workflow_handle(each).terminate()


async def test_what_it_had_registered_when_it_was_terminated_is_named(place: Place) -> None:
    """Only versions that are still active: others may have been deactivated or replaced."""
    task_id = await place.begun()
    made = [ToolEntry(manifest=ToolManifest(tool_id=tool_id, name=tool_id)) for tool_id in ("counter", "off", "newer", "gone")]
    assert await place.tools.put_made([(entry, Evidence(task_id=task_id, at=now())) for entry in made]) is None
    assert await place.tools.deactivate("off", "1.0.0")
    await place.tools.put(ToolEntry(manifest=ToolManifest(tool_id="newer", name="newer", version="1.1.0")), "test")
    await place.tools.remove("gone")
    await place.client.get_workflow_handle(task_id).terminate()
    await place.sweep.run()
    task = await place.tasks.get(task_id)
    assert task is not None
    assert (task.status, task.tool_ids) == (TaskState.FAILED, ("counter",))
    assert task.reason == "Its workflow was terminated on Temporal. What it had registered by then can be called: counter 1.0.0."


async def test_what_is_wrong_with_one_task_or_with_the_disk_does_not_end_the_sweep(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    broken, gone = await place.begun(), await place.begun()
    made = ToolEntry(manifest=ToolManifest(tool_id="counter", name="counter"))
    assert await place.tools.put_made([(made, Evidence(task_id=broken, at=now()))]) is None
    async with place.database.write() as connection:
        await connection.execute(update(tables.tool_versions).values(manifest="{}"))
    for task_id in (broken, gone):
        await place.client.get_workflow_handle(task_id).terminate()
    looks, has_gone_on, present = list[int](), asyncio.Event(), place.benches.present

    async def failing_once() -> frozenset[str]:
        looks.append(1)
        match len(looks):
            case 1:
                raise OSError(errno.EIO, "Input/output error")
            case 3:
                has_gone_on.set()
            case _:
                pass
        return await present()

    monkeypatch.setattr(place.benches, "present", failing_once)
    async with asyncio.timeout(60), sweeping_tasks(place.sweep, 0.01):
        await has_gone_on.wait()
    assert await place.state(gone) == (TaskState.FAILED, False)
    assert (await place.state(broken))[0] is TaskState.RUNNING


async def test_a_workflow_that_failed_is_told_of_with_its_cause(place: Place) -> None:
    task_id = await place.begun(given=None)
    async with Worker(place.client, task_queue=f"nobody-{task_id}", workflows=[CreateTool]):
        with pytest.raises(WorkflowFailureError):
            await place.client.get_workflow_handle(task_id).result()
    await place.sweep.run()
    task = await place.tasks.get(task_id)
    assert task is not None
    assert (task.status, "The input is not a MakeRequest" in task.reason) == (TaskState.FAILED, True)


async def test_a_task_that_temporal_does_not_know_ends(place: Place) -> None:
    task_id = await place.begun(with_workflow=False)
    await place.sweep.run()
    assert await place.state(task_id) == (TaskState.FAILED, False)


async def test_what_moved_to_another_host_or_has_ended_leaves_this_one_again_and_again(place: Place) -> None:
    stays, moved, ended = [await place.begun() for _ in range(3)]
    await place.tasks.move(moved, "here", "there")
    await place.tasks.settle(ended, TaskState.COMPLETED)
    await place.sweep.run()
    assert [(await place.state(task_id))[1] for task_id in (moved, ended)] == [False, False]
    await place.benches.of(moved)  # a step that had not heard of it
    await place.sweep.run()
    assert (await place.state(moved))[1] is False
    assert await place.state(stays) == (TaskState.RUNNING, True)
    assert "goes on on 'there'" in (await place.notes.after(moved))[-1].text
    for task_id in (stays, moved, ended):
        await place.client.get_workflow_handle(task_id).terminate()
