"""The log of a task that makes a tool: a line for each thing that people should know of a step."""

import hashlib
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime

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
        """As `engine.tasks.progress.telling`."""
        return telling(self._tasks, step.task_id, attempt, say)

    async def inspected(self, step: TaskStep, found: Inspected) -> None:
        """The links that were removed: the files of the repository do not show them."""
        links, at = found.inspection.dropped, datetime.now(UTC)
        if links:
            told = f"[STAGE] taken away, since it leads out of the repository: {', '.join(links)}"
            await self._notes.write(step.task_id, (NewNote("dropped", TaskNoteKind.STAGE, log_line(at, told), [*links], at),))

    async def alerted(self, step: TaskStep) -> None:
        """Why the tool is to be repaired, if an alert says it."""
        tool_id = subject_of(step.spec)
        alert = await self._events.latest_alert(tool_id)
        if alert is not None and isinstance(alert.details, dict):
            text = log_line(alert.at, f"[HEALTH_ALERT] {tool_id}: {alert.details['error']}", is_error=True)
            await self._notes.write(step.task_id, (NewNote(alert.event_id, TaskNoteKind.HEALTH_ALERT, text, alert.details, alert.at),))

    async def building(self, step: BuildStep) -> None:
        """Which of the ways to build is tried."""
        if step.plan.found:
            at = datetime.now(UTC)
            line = log_line(at, f"[BUILD] trying {step.plan.found}")
            await self._notes.write(step.task_id, (NewNote(f"build:{_key(step)}", TaskNoteKind.BUILD, line, None, at),))

    async def built(self, step: BuildStep, outcome: BuildOutcome) -> None:
        """Of a build without a model: what it left out, or why there is none."""
        notes = _left_out(step, outcome) if outcome.candidate is not None else (_not_built(step, outcome),)
        if notes:
            await self._notes.write(step.task_id, notes)


def _left_out(step: BuildStep, outcome: BuildOutcome) -> tuple[NewNote, ...]:
    at, key = datetime.now(UTC), _key(step)
    return tuple(
        NewNote(f"left out:{key}:{number}", TaskNoteKind.BUILD, log_line(at, f"[BUILD] left out: {line}"), None, at)
        for number, line in enumerate(outcome.left_out, start=1)
    )


def _not_built(step: BuildStep, outcome: BuildOutcome) -> NewNote:
    at = datetime.now(UTC)
    why = abridged(outcome.why)
    return NewNote(f"not built:{_key(step)}", TaskNoteKind.BUILD, log_line(at, f"[BUILD] {why}", is_error=True), None, at)


def _key(step: BuildStep) -> str:
    """Of several ways each has lines of its own."""
    return f"{step.plan.way}:{hashlib.sha256(step.plan.found.encode()).hexdigest()[:16]}"
