"""The steps of a task on the host that does it."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.heartbeats import beating
from activities.task_progress import telling
from engine.making.maker import Maker
from engine.making.uv.outages import Outage
from engine.store.clock import now
from engine.store.events import EventTable
from engine.store.task_notes import NewNote, TaskNoteTable
from engine.store.tasks import TaskTable
from toolagent.contracts.making import TaskNoteKind
from toolagent.core.task_requests import subject_of
from toolagent_service import step_names
from toolagent_service.agents.coding_log import log_line
from toolagent_service.contracts.making_steps import (
    Assessed,
    BuildOutcome,
    BuildStep,
    Diagnosis,
    Inspected,
    Registered,
    RegisterStep,
    TaskStep,
    VerifyStep,
)
from toolagent_service.making.task_reasons import abridged

_PATIENCE = 3
"""Attempts, when something of ours is away, before the task is told so."""

_PAUSE = timedelta(seconds=5)
"""After the first of them; longer each time."""


class MakeTool:
    """What a step finds wrong with the task is its answer; what it raises is ours, and is tried again."""

    def __init__(self, maker: Maker, tasks: TaskTable, notes: TaskNoteTable, events: EventTable) -> None:
        self._maker, self._tasks, self._notes, self._events = maker, tasks, notes, events

    @activity.defn(name=step_names.INSPECT_TASK)
    async def inspect_task(self, step: TaskStep) -> Inspected:
        async with beating() as turn, telling(self._tasks, step.task_id, turn.say) as tell:
            inspected = await self._maker.inspect(step, tell)
            await self._notes.write(step.task_id, _dropped(inspected))
            return inspected

    @activity.defn(name=step_names.DIAGNOSE)
    async def diagnose(self, step: TaskStep) -> Diagnosis:
        async with beating() as turn, telling(self._tasks, step.task_id, turn.say) as tell:
            found = await self._maker.diagnose(step, tell)
            if found.last_error:
                await self._alerted(step.task_id, subject_of(step.spec))
            return found

    async def _alerted(self, task_id: str, tool_id: str) -> None:
        """Why it is to be mended, as far as it was seen."""
        alert = await self._events.latest_alert(tool_id)
        if alert is not None and isinstance(alert.details, dict):
            text = log_line(alert.at, f"[HEALTH_ALERT] {tool_id}: {alert.details['error']}", is_error=True)
            await self._notes.write(task_id, (NewNote(alert.event_id, TaskNoteKind.HEALTH_ALERT, text, alert.details, alert.at),))

    @activity.defn(name=step_names.LAY_OUT)
    async def lay_out(self, step: TaskStep) -> None:
        async with beating():
            await self._maker.lay_out(step)

    @activity.defn(name=step_names.BUILD_CANDIDATE)
    async def build_candidate(self, step: BuildStep) -> BuildOutcome:
        async with beating() as turn, telling(self._tasks, step.task_id, turn.say) as tell:
            await self._notes.write(step.task_id, _begun(step))
            async with _waiting():
                outcome = await self._maker.build(step, tell, is_patient=_is_patient())
            await self._notes.write(step.task_id, _said_of(step, outcome))
            return outcome

    @activity.defn(name=step_names.VERIFY_CANDIDATE)
    async def verify_candidate(self, step: VerifyStep) -> Assessed:
        async with beating() as turn, telling(self._tasks, step.task_id, turn.say) as tell, _waiting():
            return await self._maker.verify(step, tell, is_patient=_is_patient())

    @activity.defn(name=step_names.REGISTER_CANDIDATE)
    async def register_candidate(self, step: RegisterStep) -> Registered:
        """All or nothing: a cancellation that comes in the middle comes too late."""
        async with beating():
            registering = asyncio.ensure_future(self._maker.register(step))
            try:
                return await asyncio.shield(registering)
            except asyncio.CancelledError:
                return await registering

    @activity.defn(name=step_names.CLEAR_TASK)
    async def clear_task(self, step: TaskStep) -> None:
        async with beating():
            await self._maker.clear(step)


def _is_patient() -> bool:
    return activity.info().attempt < _PATIENCE


@asynccontextmanager
async def _waiting() -> AsyncGenerator[None]:
    """What of ours is away is not back in the second after which Temporal asks again."""
    try:
        yield
    except Outage as outage:
        pause = _PAUSE * activity.info().attempt
        raise ApplicationError(str(outage), type=Outage.__name__, next_retry_delay=pause) from outage


def _dropped(inspected: Inspected) -> tuple[NewNote, ...]:
    """What nobody will find in the files of the repository."""
    links, at = inspected.inspection.dropped, now()
    told = f"[STAGE] taken away, since it leads out of the repository: {', '.join(links)}"
    return (NewNote("dropped", TaskNoteKind.STAGE, log_line(at, told), [*links], at),) if links else ()


def _begun(step: BuildStep) -> tuple[NewNote, ...]:
    """Which of the ways it is."""
    if not step.plan.found:
        return ()
    at = now()
    return (NewNote(f"build:{_key(step)}", TaskNoteKind.BUILD, log_line(at, f"[BUILD] trying {step.plan.found}"), None, at),)


def _key(step: BuildStep) -> str:
    """Of several ways each has lines of its own."""
    return f"{step.plan.way}:{hashlib.sha256(step.plan.found.encode()).hexdigest()[:16]}"


def _said_of(step: BuildStep, outcome: BuildOutcome) -> tuple[NewNote, ...]:
    """Of a build without a model: what it left out, or why there is none."""
    at, key = now(), _key(step)
    if outcome.candidate is None:
        why = abridged(f"{outcome.reason}\n{outcome.told}")
        return (NewNote(f"not built:{key}", TaskNoteKind.BUILD, log_line(at, f"[BUILD] {why}", is_error=True), None, at),)
    return tuple(
        NewNote(f"left out:{key}:{number}", TaskNoteKind.BUILD, log_line(at, f"[BUILD] left out: {line}"), None, at)
        for number, line in enumerate(outcome.left_out, start=1)
    )
