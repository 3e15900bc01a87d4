"""A front door in this process: its lane, its lease, and the client that knows both."""

import secrets
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import timedelta

from temporalio.client import Client
from temporalio.worker import Worker

from activities.call_tool import CallTool
from activities.make_batch import MakeBatch
from engine.calling.joined_call import JoinedCall
from engine.calling.lane import Flight, Lane
from engine.calling.lane_call import LaneCalls
from engine.calling.queued_call import QueuedCall
from engine.store.claims import Claim
from toolagent.client.failures import AnswerPendingError
from toolagent_service import step_names
from toolagent_service.calls.lanes import LaneUnreachableError
from toolagent_service.lane_workflow import LaneWorkflow
from workers.front.door_lease import held_door
from workers.front.lane_client import LaneClient
from workers.front.prompt_calls import PromptCalls
from workers.parts import Store
from workers.settings import Settings
from workers.state.directory import StateDirectory
from workflows.call_lane import CallLane

__all__ = ["running_door"]

_LAST = timedelta(seconds=0.5)
_JOINED_AT_ONCE = 256


@asynccontextmanager
async def running_door(
    settings: Settings, state: StateDirectory, store: Store, client: Client, calls: PromptCalls, maker: LaneCalls, queued: QueuedCall
) -> AsyncGenerator[LaneClient]:
    """Until the block ends, and its lane with it."""
    door = secrets.token_hex(8)
    workflow = LaneWorkflow(client, door)

    async def move(flight: Flight) -> None:
        if flight.claim is None:
            _, flight.claim = await store.claims.take(Claim(flight.call_id, flight.fingerprint, door), flight.call)
        try:
            await calls.start(flight.call, flight.call_id)
        except AnswerPendingError as error:
            raise LaneUnreachableError(str(error)) from error

    async def adopt(claim: Claim) -> None:
        if claim.call is not None:
            await calls.start(claim.call, claim.call_id)

    async def end_lane(gone: str) -> None:
        with suppress(LaneUnreachableError):
            await LaneWorkflow(client, gone).close()

    lane = Lane(maker, workflow.send, move)
    async with AsyncExitStack() as stack:
        lease = held_door(door, state.host, store.doors, store.claims, adopt, end_lane, settings.host_heartbeat_s)
        await stack.enter_async_context(lease)
        stack.push_async_callback(end_lane, door)
        executor = stack.enter_context(ThreadPoolExecutor(1, thread_name_prefix="lane"))
        worker = Worker(
            client,
            task_queue=step_names.door_queue(door),
            workflows=[CallLane],
            activities=[MakeBatch(lane).make_batch, CallTool(JoinedCall(lane, queued)).call_tool],
            workflow_task_executor=executor,
            max_concurrent_activities=_JOINED_AT_ONCE,
            max_concurrent_local_activities=4,
            graceful_shutdown_timeout=_LAST,
        )
        await stack.enter_async_context(worker)
        stack.push_async_callback(lane.close)
        yield LaneClient(calls, lane, door, store.claims, store.calls, store.cached_tools, maker.is_ready, store.durations, settings.lanes)
