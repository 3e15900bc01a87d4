"""The log of a task: lines about its steps for people."""

import hashlib
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime

from pydantic import JsonValue

from engine.store.events import EventTable
from engine.store.task_notes import TaskNoteTable
from engine.store.tasks import TaskTable
from engine.tasks.progress import Progress, telling
from toolagent.contracts.making import TaskNoteKind
from toolagent.core.task_requests import subject_of
from toolagent_service.agents.coding_log import NewNote, log_line
from toolagent_service.contracts.making_steps import BuildOutcome, BuildStep, Inspected, TaskStep
from toolagent_service.making.task_reasons import abridged


class TaskLog:
    """Each line has a key, so writing it again changes nothing."""

    def __init__(self, tasks: TaskTable, notes: TaskNoteTable, events: EventTable) -> None:
        self._tasks, self._notes, self._events = tasks, notes, events

    def telling(self, step: TaskStep, attempt: str, say: Progress) -> AbstractAsyncContextManager[Progress]:
        """See `engine.tasks.progress.telling`."""
        return telling(self._tasks, step.task_id, attempt, say)

    async def inspected(self, step: TaskStep, found: Inspected) -> None:
        """Names the removed links, which the files of the repository do not show."""
        if links := found.inspection.dropped:
            told = f"[STAGE] taken away, since it leads out of the repository: {', '.join(links)}"
            await self._notes.write(step.task_id, (_note("dropped", TaskNoteKind.STAGE, told, payload=[*links]),))

    async def alerted(self, step: TaskStep) -> None:
        """Tells why the tool is repaired, if there is an alert."""
        tool_id = subject_of(step.spec)
        alert = await self._events.latest_alert(tool_id)
        if alert is not None and isinstance(alert.details, dict):
            text = log_line(alert.at, f"[HEALTH_ALERT] {tool_id}: {alert.details['error']}", is_error=True)
            await self._notes.write(step.task_id, (NewNote(alert.event_id, TaskNoteKind.HEALTH_ALERT, text, alert.details, alert.at),))

    async def building(self, step: BuildStep) -> None:
        """Names the way to build that is tried."""
        if step.plan.found:
            line = f"[BUILD] trying {step.plan.found}"
            await self._notes.write(step.task_id, (_note(f"build:{_key(step)}", TaskNoteKind.BUILD, line),))

    async def built(self, step: BuildStep, outcome: BuildOutcome) -> None:
        """Tells what a build without a model left out, or why it failed."""
        key, build = _key(step), TaskNoteKind.BUILD
        notes = [_note(f"left out:{key}:{at}", build, f"[BUILD] left out: {line}") for at, line in enumerate(outcome.left_out, 1)]
        if outcome.candidate is None:
            notes = [_note(f"not built:{key}", build, f"[BUILD] {abridged(outcome.why)}", is_error=True)]
        if notes:
            await self._notes.write(step.task_id, notes)


def _note(key: str, kind: TaskNoteKind, line: str, *, is_error: bool = False, payload: JsonValue = None) -> NewNote:
    at = datetime.now(UTC)
    return NewNote(key, kind, log_line(at, line, is_error=is_error), payload, at)


def _key(step: BuildStep) -> str:
    """Each way to build has lines of its own."""
    return f"{step.plan.way}:{hashlib.sha256(step.plan.found.encode()).hexdigest()[:16]}"
