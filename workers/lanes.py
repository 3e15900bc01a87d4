"""The front door of this process: its lane, its lease, and its client."""

import secrets
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta

from temporalio.client import Client
from temporalio.service import RPCError
from temporalio.worker import Worker

from activities.join_call import JoinCall
from activities.make_batch import MakeBatch
from api.client.guarded_calls import GuardedCalls
from api.client.lane_calls import LaneCalls
from engine.calling.door import Door, DoorTables
from engine.calling.joined_call import JoinedCalls
from engine.calling.lane import Lane
from engine.calling.lane_call import LaneMaking
from engine.calling.moves import Moves
from engine.upkeep.hosts.doors import DoorKeeper, Successor, held_door, succeeding
from engine.upkeep.hosts.ended_elsewhere import ending_elsewhere
from toolagent.client.failures import AnswerPendingError, CallRefusedError
from toolagent.client.temporal import ToolAgentClient
from toolagent.contracts.calls import ErrorType, ToolCall
from toolagent.contracts.lanes import LaneCounts, LaneFigures
from toolagent.core.calls.results import IDEMPOTENCY_CONFLICT, reason_of
from toolagent_service.calls.lanes import LaneRefusedError, LaneUnreachableError, door_queue
from toolagent_service.contracts.lanes import LaneMode
from toolagent_service.lane_workflow import LaneWorkflow
from workers.storage import Store
from workers.temporal.host_workers import HEARTBEAT_THROTTLE
from workflows.calls.call_lane import CallLane

_LAST = timedelta(seconds=0.5)
_JOINED_AT_ONCE = 10_000
"""The most calls that are waited for at once. A call that finds no place is asked for again and again, in a history that grows."""

_BATCHES_AT_ONCE = 4


class _Workflows:
    """Workflows of the calls of a door, for the door or its successor. All methods are idempotent."""

    def __init__(self, client: Client, calls: ToolAgentClient) -> None:
        self._client, self._calls = client, calls

    async def start(self, call: ToolCall, call_id: str) -> bool:
        """Start a call; False if another call's workflow may have the id. Raises LaneUnreachableError, LaneRefusedError."""
        try:
            await self._calls.start(call, call_id)
        except CallRefusedError as error:
            if reason_of(error.result) == IDEMPOTENCY_CONFLICT:
                return False
            if error.result.error_type is ErrorType.VALIDATION_ERROR:
                raise LaneRefusedError(error.result) from error
            raise LaneUnreachableError(str(error)) from error
        except (AnswerPendingError, RPCError) as error:
            raise LaneUnreachableError(str(error)) from error
        return True

    async def end_lane(self, of: str) -> None:
        """End the lane of a door that is gone. Raises LaneUnreachableError."""
        await LaneWorkflow(self._client, of).terminate()

    async def is_over(self, call_id: str) -> bool | None:
        """Whether the call has ended; None if Temporal knows no workflow of that id."""
        try:
            view = await self._calls.task(call_id)
        except AnswerPendingError:
            return False
        return None if view is None else view.ended_at is not None


@dataclass(frozen=True, slots=True)
class RunningDoor:
    """`figures` are those of its lane; None if calls do not use it."""

    client: LaneCalls
    figures: Callable[[], LaneCounts | None]


@asynccontextmanager
async def running_door(store: Store, client: Client, calls: GuardedCalls, making: LaneMaking) -> AsyncGenerator[RunningDoor]:
    """A door with its lane, until the block ends."""
    door, settings = secrets.token_hex(8), store.settings
    workflows = _Workflows(client, calls)
    moves = Moves(store.claims, workflows.start, making.refuse, door)
    workflow = LaneWorkflow(client, door)
    lane = Lane(making, workflow.send, moves.move)
    async with AsyncExitStack() as stack:
        keeper = DoorKeeper(door, store.state.host or None, store.doors, store.claims, workflows, lane, moves.adopt)
        await stack.enter_async_context(held_door(keeper, settings.host.host_heartbeat_s, lambda: workflow.is_open))
        executor = stack.enter_context(ThreadPoolExecutor(1, thread_name_prefix="lane"))
        worker = Worker(
            client,
            task_queue=door_queue(door),
            workflows=[CallLane],
            activities=[MakeBatch(lane).make_batch, JoinCall(JoinedCalls(lane, store.claims, door)).join_call],
            workflow_task_executor=executor,
            max_concurrent_activities=_JOINED_AT_ONCE,
            max_heartbeat_throttle_interval=HEARTBEAT_THROTTLE,
            default_heartbeat_throttle_interval=HEARTBEAT_THROTTLE,
            max_concurrent_local_activities=_BATCHES_AT_ONCE,
            graceful_shutdown_timeout=_LAST,
        )
        await stack.enter_async_context(worker)
        stack.push_async_callback(_closed, workflow)
        stack.push_async_callback(lane.close)
        await stack.enter_async_context(ending_elsewhere(door, lane, store.claims))
        tables, mode = DoorTables(store.claims, store.calls, store.cached_tools, store.durations, store.memberships), settings.calls.lanes
        client_of_door = LaneCalls(calls, Door(door, lane, making.is_ready, tables, mode))
        yield RunningDoor(client_of_door, lambda: None if mode is LaneMode.OFF else _counts(lane.figures))


def succeeded_doors(store: Store, client: Client, making: LaneMaking) -> AbstractAsyncContextManager[None]:
    """Take over from doors that are gone, as a host without a door, until the block ends."""
    workflows = _Workflows(client, ToolAgentClient(client))
    successor = Successor(store.doors, store.claims, workflows, Moves(store.claims, workflows.start, making.refuse, "").adopt)
    return succeeding(successor, store.settings.host.host_heartbeat_s)


def _counts(figures: LaneFigures) -> LaneCounts:
    """The figures that anybody may read."""
    return LaneCounts.model_validate(figures.model_dump(exclude={"last_error"}))


async def _closed(workflow: LaneWorkflow) -> None:
    """Close the lane; it stays open if Temporal does not answer."""
    with suppress(LaneUnreachableError):
        await workflow.close()
