"""The visible progress of a long step: each change, some lines of the log, and the reason of a repair."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import cast

import pytest
import pytest_asyncio
from pydantic import JsonValue
from temporalio.testing import ActivityEnvironment

from activities.make_tool import MakeTool
from engine.making.maker import Maker
from engine.runtimes.runtime import Progress
from engine.store.database import Database
from engine.store.events import EventTable
from engine.store.task_notes import TaskNoteTable
from engine.store.tasks import TaskTable
from engine.tasks.log import TaskLog
from engine.tasks.progress import telling
from tests.store.making import task
from toolagent.contracts.making import Inspection, TaskNote, TaskNoteKind
from toolagent.contracts.records import Event, EventType
from toolagent.contracts.task_specs import RepairTool
from toolagent_service.contracts.making_steps import Diagnosis, Inspected, TaskStep

BOUND_S = 60.0
REPAIR = task(1, RepairTool(tool_id="word_counter"))


@pytest_asyncio.fixture
async def database(database: Database) -> Database:
    await TaskTable(database).create(REPAIR)
    return database


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.tasks.progress._QUIET_S", 0.01)
    monkeypatch.setattr("engine.tasks.progress._TELL_S", 0.01)


async def _lines(database: Database) -> list[str]:
    found = await TaskNoteTable(database).after(REPAIR.task_id)
    return [note.text.rpartition("[PROGRESS] ")[2] for note in found if note.kind is TaskNoteKind.PROGRESS]


async def _progress(database: Database) -> str:
    found = await TaskTable(database).get(REPAIR.task_id)
    assert found is not None
    return found.progress


async def _until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(BOUND_S):
        while not await holds():  # noqa: ASYNC110 - what is waited for is in the database
            await asyncio.sleep(0.01)


async def test_what_is_secret_in_progress_is_told_to_nobody(database: Database) -> None:
    said: list[str] = []

    async with telling(TaskTable(database), REPAIR.task_id, "1", said.append, line_s=0) as tell:
        tell(f"cloning https://me:hidden@host/x.git?private_token=hidden {'x' * 500}")

        async def is_noted() -> bool:
            return bool(await _lines(database))

        await _until(is_noted)

    told = (*said, await _progress(database), *await _lines(database))
    assert ["hidden" in text or len(text) > 200 for text in told] == [False] * 3


async def test_progress_is_told_at_once_and_noted_by_the_clock_without_a_line_for_each(database: Database) -> None:
    said: list[str] = []

    async with telling(TaskTable(database), REPAIR.task_id, "1", said.append) as tell:
        for number in range(500):
            tell(f"step {number}")

        async def is_noted() -> bool:
            return await _progress(database) == "step 499"

        await _until(is_noted)

    assert said == [f"step {number}" for number in range(500)]
    assert await _lines(database) == []


async def test_what_takes_long_is_in_the_log_each_thing_once_also_in_the_next_attempt(database: Database) -> None:
    async with telling(TaskTable(database), REPAIR.task_id, "1", lambda _: None, line_s=0.0) as tell:
        for number in (1, 2):
            for _ in range(50):
                tell(f"step {number}")

            async def is_said(number: int = number) -> bool:
                return len(await _lines(database)) == number

            await _until(is_said)

    assert await _lines(database) == ["step 1", "step 2"]


class _Found:
    """Replaces the maker: its findings are ready."""

    def __init__(self, last_error: str) -> None:
        self._found = Diagnosis(version="1.0.0", last_error=last_error)

    async def diagnose(self, _step: TaskStep, _progress: Progress) -> Diagnosis:
        return self._found

    async def inspect(self, _step: TaskStep, _progress: Progress) -> Inspected:
        return Inspected(inspection=Inspection(dropped=("etc", "up")))


async def _alerts(database: Database, last_error: str) -> tuple[TaskNote, ...]:
    notes, tasks = TaskNoteTable(database), TaskTable(database)
    make = MakeTool(cast("Maker", _Found(last_error)), TaskLog(tasks, notes, EventTable(database)))
    for _ in range(2):  # as often as Temporal likes
        await ActivityEnvironment().run(make.diagnose, TaskStep(task_id=REPAIR.task_id, spec=REPAIR.spec))
    return tuple(note for note in await notes.after(REPAIR.task_id) if note.kind is TaskNoteKind.HEALTH_ALERT)


async def test_the_log_of_a_repair_has_the_alert_of_its_tool(database: Database) -> None:
    assert await _alerts(database, "It crashed before anybody looked.") == ()
    details = {"tool_id": "word_counter", "error": "exited with code 3", "last_healthy": "2026-11-21T12:00:00+00:00"}
    for number, tool_id, error in ((2, "word_counter", details["error"]), (1, "word_counter", "earlier"), (3, "other_tool", "other")):
        kind, at = EventType.HEALTH_ALERT, datetime(2026, 11, 21, 12, number, tzinfo=UTC)
        told: dict[str, JsonValue] = {**details, "error": error}
        await EventTable(database).warn(Event(event_id=f"alert-{number}", event_type=kind, tool_id=tool_id, at=at, details=told))
    assert await _alerts(database, "") == ()  # it runs again
    (note,) = await _alerts(database, "exited with code 3")
    assert note.payload == details
    assert note.text.endswith("ERROR: [HEALTH_ALERT] word_counter: exited with code 3")


async def test_the_log_says_which_links_of_a_repository_were_taken_away(database: Database) -> None:
    notes = TaskNoteTable(database)
    make = MakeTool(cast("Maker", _Found("")), TaskLog(TaskTable(database), notes, EventTable(database)))
    for _ in range(2):
        await ActivityEnvironment().run(make.inspect_task, TaskStep(task_id=REPAIR.task_id, spec=REPAIR.spec))
    told = [note.payload for note in await notes.after(REPAIR.task_id) if "leads out of the repository: etc, up" in note.text]
    assert told == [["etc", "up"]]
