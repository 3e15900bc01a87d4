"""The paths of one call."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue
from temporalio import activity
from temporalio.api.enums.v1 import EventType
from temporalio.common import SearchAttributePair, TypedSearchAttributes
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from tests.workflows.ends import Walk
from tests.workflows.stage import AnyHandle, Stage
from tests.workflows.steps import Steps, Unhurried, cancelled, plan_of, settled
from toolagent.client import names
from toolagent.contracts.calls import ErrorType, ToolError
from toolagent.core.calls.results import failed, succeeded
from toolagent_service import step_names
from toolagent_service.calls.lanes import door_queue
from toolagent_service.contracts.steps import (
    Admission,
    AdmitRequest,
    Admitted,
    Answered,
    CallRequest,
    Finished,
    Held,
    JoinRequest,
    Placement,
)

__all__ = ["PATHS", "Answering"]

BENIGN = ApplicationErrorCategory.BENIGN
ECHO: JsonValue = {"tool_id": "echo", "params": {"message": "你好"}}


@dataclass
class Answering(Steps):
    """`admit` answers instead of planning: for calls that need no further step, and refused ones."""

    error: ToolError | None = None

    @activity.defn(name=step_names.ADMIT)
    async def admit(self, request: AdmitRequest) -> Admission:
        at = activity.info().started_time
        tool_id = request.call.tool_id
        if self.error is not None:
            return Answered(result=failed(request.call_id, tool_id, self.error, at))
        return Answered(result=succeeded(request.call_id, tool_id, request.call.params, at, execution_time=0.01, metadata={"fast": True}))


@dataclass
class Impatient(Steps):
    """A call that waits at most a second for a slot."""

    @activity.defn(name=step_names.ADMIT)
    async def admit(self, request: AdmitRequest) -> Admission:
        return Admitted(plan=plan_of(request, queue=self.queue).model_copy(update={"queue_timeout_s": 1.0}))


@dataclass
class AtDoor(Steps):
    """A front door has the call, until it was joined there this many times."""

    joins: int = 1
    joined: list[JoinRequest] = field(default_factory=list[JoinRequest])
    is_released: asyncio.Event = field(default_factory=asyncio.Event)

    @activity.defn(name=step_names.ADMIT)
    async def admit(self, request: AdmitRequest) -> Admission:
        if len(self.joined) < self.joins:
            return Held(door=f"door-of-{self.queue}")
        at = activity.info().scheduled_time
        return Answered(result=succeeded(request.call_id, request.call.tool_id, 42, at, execution_time=0.3, metadata={"way": "lane"}))

    @activity.defn(name=step_names.JOIN)
    async def join_call(self, request: JoinRequest) -> None:
        self.joined.append(request)
        self.called.set()
        while not self.is_released.is_set():
            await asyncio.sleep(0.05)
            activity.heartbeat()


async def play_held(stage: Stage, steps: AtDoor) -> AnyHandle:
    door = door_queue(f"door-of-{stage.queue}")
    async with stage.workers([steps.admit, steps.place, steps.settle, steps.call_tool, steps.join_call], door):
        handle = await stage.start(names.INVOKE_TOOL, ECHO, workflow_id=f"call-{stage.queue}")
        await asyncio.wait_for(steps.called.wait(), 60)
        steps.is_released.set()
        await handle.result()
    return handle


async def held(stage: Stage) -> AnyHandle:
    """The call has left the lane of its door, which continues it."""
    return await play_held(stage, AtDoor(queue=stage.queue))


async def play_call(
    stage: Stage, steps: Steps, *queues: str, call: JsonValue = ECHO, attributes: TypedSearchAttributes | None = None
) -> AnyHandle:
    async with stage.workers([steps.admit, steps.place, steps.settle, steps.call_tool], *queues):
        handle = await stage.start(names.INVOKE_TOOL, call, workflow_id=f"call-{stage.queue}", attributes=attributes)
        await handle.result()
    return handle


async def ordinary(stage: Stage) -> AnyHandle:
    """As the front door starts it, with its search attributes."""
    known = TypedSearchAttributes([SearchAttributePair(names.TOOL_ID, "echo"), SearchAttributePair(names.TASK_TYPE, "call")])
    return await play_call(stage, Steps(queue=f"{stage.queue}-calls"), f"{stage.queue}-calls", attributes=known)


async def settled_by_its_attempt(stage: Stage) -> AnyHandle:
    return await play_call(stage, Steps(queue=f"{stage.queue}-calls", behaviour=settled), f"{stage.queue}-calls")


async def from_elsewhere(stage: Stage) -> AnyHandle:
    """As another project's workflow or the `temporal` program starts it."""
    call: JsonValue = {"tool_id": "echo", "params": {}, "caller": {"caller_id": "agent-7"}}
    return await play_call(stage, Steps(queue=f"{stage.queue}-calls"), f"{stage.queue}-calls", call=call)


async def fast(stage: Stage) -> AnyHandle:
    return await play_call(stage, Answering())


async def told(stage: Stage) -> AnyHandle:
    """A callback announces its end."""
    return await play_call(stage, Answering(), call={"tool_id": "echo", "mode": "async", "callback_url": "https://example.com/told"})


async def refused(stage: Stage) -> AnyHandle:
    return await play_call(stage, Answering(error=ToolError(type=ErrorType.TOOL_NOT_FOUND, message="There is no tool 'echo'.")))


async def malformed(stage: Stage) -> AnyHandle:
    return await play_call(stage, Steps(), call={"tool_id": "Not An Id"})


async def key_without_its_id(stage: Stage) -> AnyHandle:
    return await play_call(stage, Steps(), call={"tool_id": "echo", "idempotency_key": "k"})


async def retried(stage: Stage) -> AnyHandle:
    """The connection to a repeatable tool is lost once."""

    async def lost_once(_request: CallRequest) -> Finished:
        if activity.info().attempt == 1:
            raise ApplicationError("The connection was lost.", type=step_names.TOOL_CONNECTION_LOST, category=BENIGN)
        return Finished(output=1)

    return await play_call(stage, Steps(queue=f"{stage.queue}-calls", behaviour=lost_once), f"{stage.queue}-calls")


async def broken(stage: Stage) -> AnyHandle:
    async def no_disk(_request: CallRequest) -> Finished:
        raise ApplicationError("The disk is gone.", non_retryable=True, category=BENIGN)

    return await play_call(stage, Steps(queue=f"{stage.queue}-calls", behaviour=no_disk), f"{stage.queue}-calls")


async def not_taken(stage: Stage) -> AnyHandle:
    return await play_call(stage, Impatient(queue=f"{stage.queue}-nobody"))


async def placed_elsewhere(stage: Stage) -> AnyHandle:
    alive = f"{stage.queue}-alive"
    steps = Steps(queue=f"{stage.queue}-dead", host="host-dead", elsewhere=Placement(queue=alive, host="host-alive"))
    return await play_call(stage, steps, alive)


async def lost_with_its_host(stage: Stage) -> AnyHandle:
    async def silent_at_first(request: CallRequest) -> Finished:
        if not request.lost:
            await asyncio.Event().wait()
        return Finished(output=1)

    alive = f"{stage.queue}-alive"
    elsewhere = Placement(queue=alive, host="host-alive")
    steps = Steps(queue=f"{stage.queue}-dying", host="host-dying", elsewhere=elsewhere, behaviour=silent_at_first)
    return await play_call(stage, steps, steps.queue, alive)


async def cancelled_while_running(stage: Stage) -> AnyHandle:
    async def slow(_request: CallRequest) -> Finished:
        try:
            while True:
                activity.heartbeat()
                await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            return cancelled()

    steps = Steps(queue=f"{stage.queue}-calls", behaviour=slow)
    async with stage.workers([steps.admit, steps.place, steps.settle, steps.call_tool], steps.queue):
        handle = await stage.start(names.INVOKE_TOOL, ECHO, workflow_id=f"call-{stage.queue}")
        await asyncio.wait_for(steps.called.wait(), 60)
        await handle.cancel()
        await handle.result()
    return handle


async def cancelled_while_waiting(stage: Stage) -> AnyHandle:
    steps = Steps(queue=f"{stage.queue}-nobody")
    async with stage.workers([steps.admit, steps.place, steps.settle, steps.call_tool]):
        handle = await stage.start(names.INVOKE_TOOL, ECHO, workflow_id=f"call-{stage.queue}")
        async with asyncio.timeout(60):
            async for event in handle.fetch_history_events(wait_new_event=True):
                if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
                    break
        await handle.cancel()
        await handle.result()
    return handle


async def cancelled_while_admitting(stage: Stage) -> AnyHandle:
    """The cancellation comes during a fast call: its waiter gets the result, so the call ends with that."""
    steps = Unhurried()
    async with stage.workers([steps.admit, steps.place, steps.settle, steps.call_tool]):
        handle = await stage.start(names.INVOKE_TOOL, ECHO, workflow_id=f"call-{stage.queue}")
        await asyncio.wait_for(steps.called.wait(), 60)
        await handle.cancel()
        steps.released.set()
        await handle.result()
    return handle


async def held_and_cancelled(stage: Stage) -> AnyHandle:
    """The door gives the call away without making it when it is told to cancel it."""

    @dataclass
    class GivenAway(AtDoor):
        @activity.defn(name=step_names.ADMIT)
        async def admit(self, request: AdmitRequest) -> Admission:
            return Admitted(plan=plan_of(request)) if self.joined else Held(door=f"door-of-{self.queue}")

        @activity.defn(name=step_names.JOIN)
        async def join_call(self, request: JoinRequest) -> None:
            try:
                await AtDoor.join_call(self, request)
            except asyncio.CancelledError:
                return

    steps = GivenAway(queue=stage.queue)
    door = door_queue(f"door-of-{stage.queue}")
    async with stage.workers([steps.admit, steps.place, steps.settle, steps.call_tool, steps.join_call], door):
        handle = await stage.start(names.INVOKE_TOOL, ECHO, workflow_id=f"call-{stage.queue}")
        await asyncio.wait_for(steps.called.wait(), 60)
        await handle.cancel()
        await handle.result()
    assert not steps.calls
    return handle


async def held_by_a_door_that_is_gone(stage: Stage) -> AnyHandle:
    """No worker reads the queue of the door; then admission knows that the door is gone."""

    @dataclass
    class Gone(AtDoor):
        admitted: int = 0

        @activity.defn(name=step_names.ADMIT)
        async def admit(self, request: AdmitRequest) -> Admission:
            self.admitted += 1
            return Held(door=f"door-of-{stage.queue}") if self.admitted == 1 else Admitted(plan=plan_of(request, queue=self.queue))

    return await play_call(stage, Gone(queue=f"{stage.queue}-calls"), f"{stage.queue}-calls")


async def outcome_said(stage: Stage) -> AnyHandle:
    return await fast(stage.saying_outcomes)


async def failure_said(stage: Stage) -> AnyHandle:
    return await refused(stage.saying_outcomes)


PATHS: Mapping[str, Walk] = {
    "ordinary": Walk(ordinary, "success"),
    "settled-by-its-attempt": Walk(settled_by_its_attempt, "success"),
    "from-elsewhere": Walk(from_elsewhere, "success"),
    "fast": Walk(fast, "success"),
    "told": Walk(told, "success"),
    "refused": Walk(refused, "tool_not_found"),
    "malformed": Walk(malformed, "validation_error"),
    "key-without-its-id": Walk(key_without_its_id, "validation_error"),
    "retried": Walk(retried, "success"),
    "broken": Walk(broken, "execution_error"),
    "not-taken": Walk(not_taken, "unavailable"),
    "placed-elsewhere": Walk(placed_elsewhere, "success"),
    "lost-with-its-host": Walk(lost_with_its_host, "success"),
    "held": Walk(held, "success"),
    "held-and-cancelled": Walk(held_and_cancelled, "cancelled"),
    "held-by-a-door-that-is-gone": Walk(held_by_a_door_that_is_gone, "success"),
    "cancelled-while-admitting": Walk(cancelled_while_admitting, "success"),
    "cancelled-while-running": Walk(cancelled_while_running, "cancelled"),
    "cancelled-while-waiting": Walk(cancelled_while_waiting, "cancelled"),
    "outcome-said": Walk(outcome_said, "success"),
    "failure-said": Walk(failure_said, "tool_not_found"),
}
