"""Plays a task on a host of its own, named by the task, with scripted steps."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable

from pydantic import JsonValue
from temporalio.api.enums.v1 import EventType
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from tests.workflows.making_steps import MakingSteps
from tests.workflows.stage import AnyHandle, Stage
from toolagent.client import names
from toolagent.contracts.making import Guidance
from toolagent_service import step_names

__all__ = ["While", "after_event", "cancelled", "guided", "no_model", "play_task", "say"]

PATIENCE_S = 100
PREFIXES = {names.CREATE_TOOL: "create", names.REPAIR_TOOL: "repair"}
GUIDANCE = Guidance(id="said-1", text="Count hyphenated words as one.")

While = Callable[[AnyHandle, MakingSteps], Awaitable[None]]
"""What happens while a task is under way."""


async def play_task(stage: Stage, workflow: str, spec: JsonValue, steps: MakingSteps, during: While | None = None) -> AnyHandle:
    task_id = f"{PREFIXES[workflow]}_{hashlib.sha256(stage.queue.encode()).hexdigest()[:8]}"
    # The workflow is on the queue of the task's host too: one worker does for both.
    host = Stage(stage.client, step_names.making_queue(task_id))
    async with host.workers(steps.all):
        handle = await host.start(workflow, {"task_id": task_id, "spec": spec}, workflow_id=task_id)
        if during is not None:
            await during(handle, steps)
        # One that is no task at all fails.
        await asyncio.gather(handle.result(), return_exceptions=spec is None)
    return handle


async def after_event(handle: AnyHandle, kind: EventType.ValueType) -> None:
    async with asyncio.timeout(PATIENCE_S):
        async for event in handle.fetch_history_events(wait_new_event=True):
            if event.event_type == kind:
                return


async def cancelled(handle: AnyHandle, steps: MakingSteps) -> None:
    """Cancel when the step that waits is reached."""
    await asyncio.wait_for(steps.reached.wait(), PATIENCE_S)
    await handle.cancel()


async def guided(handle: AnyHandle, steps: MakingSteps) -> None:
    """Send guidance while the step waits; the workflow has received it before the step ends."""
    await asyncio.wait_for(steps.reached.wait(), PATIENCE_S)
    await say(handle)
    await after_event(handle, EventType.EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_SIGNALED)
    steps.released.set()


async def say(handle: AnyHandle) -> None:
    await handle.signal(names.GUIDE, GUIDANCE)


def no_model() -> ApplicationError:
    return ApplicationError("No model is set.", type=step_names.MODEL_REFUSED, non_retryable=True, category=ApplicationErrorCategory.BENIGN)
