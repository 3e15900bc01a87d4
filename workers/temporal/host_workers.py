"""The Temporal workers of one host: one for workflows, and one for each queue of calls."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import timedelta

from temporalio.client import Client
from temporalio.worker import PollerBehaviorSimpleMaximum, Worker, WorkerTuner

from activities.look_at_call import LookAtCall
from api.ports import NotReadyError
from engine.calling.intake import Intake
from toolagent.client import names
from toolagent.client.temporal import ToolAgentClient
from toolagent_service import step_names
from workers.grace import Grace
from workers.temporal.activities import Activities, MakingActivities, Steps
from workers.temporal.connection import shows_outcomes
from workers.temporal.slots import tuner_of
from workflows.calls.call_lane import CallLane
from workflows.calls.control_tool import ControlTool
from workflows.calls.deliver_callback import DeliverCallback
from workflows.calls.invoke_tool import InvokeTool
from workflows.calls.run_tools import RunTools
from workflows.chats.service_agent import ServiceAgent
from workflows.groups.tool_group import ToolGroup
from workflows.groups.use_group import UseGroup
from workflows.maintain import Maintain
from workflows.making.coding_agent import CodingAgent
from workflows.making.create_tool import CreateTool
from workflows.making.repair_tool import RepairTool
from workflows.outcome import OutcomeInterceptor
from workflows.sync_knowhub import SyncKnowHub

HOST_WORKFLOWS = (
    InvokeTool,
    ControlTool,
    RunTools,
    ToolGroup,
    UseGroup,
    Maintain,
    SyncKnowHub,
    DeliverCallback,
    CreateTool,
    RepairTool,
    CodingAgent,
    ServiceAgent,
)
WORKFLOWS = (*HOST_WORKFLOWS, CallLane)

HEARTBEAT_THROTTLE = timedelta(seconds=1)
"""Heartbeats are sent this often, because their answers bring cancellations."""

_LAST = timedelta(seconds=0.5)
"""How long activities may take to end once they are cancelled, after the grace."""

_CALLS_AT_ONCE = 256
"""Calls that are admitted or settled at once. More calls wait at Temporal, behind later ones."""

_CONTROL_SLOTS = 8
_LOOK_SLOTS = 16
_MAINTAIN_SLOTS = 2
_CALLBACK_SLOTS = 16
_SLOT_ASKERS = 4
_MAKING_SLOTS = 16
_CHAT_SLOTS = 64
"""Many, because these activities mostly wait for models."""


class WorkerPool:
    """The running workers."""

    def __init__(self, workers: Sequence[Worker], tasks: Sequence[asyncio.Task[None]]) -> None:
        self._workers = workers
        self._tasks = tasks

    async def check(self) -> None:
        """Raises NotReadyError with the queues that are not served."""
        idle = [worker.task_queue for worker in self._workers if not worker.is_running]
        if idle:
            raise NotReadyError(f"The workers of these queues do not run: {', '.join(idle)}.")

    async def ended(self) -> None:
        """Returns, or raises the error, if a worker ends without being asked to."""
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()


@asynccontextmanager
async def running_workers(
    client: Client,
    host: str,
    buckets: Mapping[str, int],
    activities: Activities,
    making: MakingActivities,
    nexus: object,
    grace: Grace,
    intake: Intake,
) -> AsyncGenerator[WorkerPool]:
    """Serve all queues of this host until the block ends. Running calls and steps of tasks then have the `grace` to end.

    `nexus` handles the operations of `ToolAgentService`. Calls for any host are taken only while the intake is open. Calls that wait
    for this host were placed before it closed.
    """
    call = activities.call
    outcomes = [OutcomeInterceptor()] if await shows_outcomes(client) else []
    look = LookAtCall(ToolAgentClient(client)).look_at_call
    with ThreadPoolExecutor(2, thread_name_prefix="workflow") as executor:
        workers = [
            Worker(
                client,
                task_queue=names.TASK_QUEUE,
                workflows=HOST_WORKFLOWS,
                activities=[*activities.local, *call, *making.local, look],
                nexus_service_handlers=[nexus],
                workflow_task_executor=executor,
                max_concurrent_workflow_tasks=_CALLS_AT_ONCE,
                max_concurrent_local_activities=_CALLS_AT_ONCE,
                no_remote_activities=True,  # calls wait in queues whose slots are counted
                graceful_shutdown_timeout=_LAST,
                interceptors=outcomes,
            ),
            _activity_worker(client, step_names.LOOKS_QUEUE, [look], _LOOK_SLOTS),
            _activity_worker(client, step_names.CALLBACKS_QUEUE, activities.callbacks, _CALLBACK_SLOTS, grace),
            _activity_worker(client, step_names.control_queue(host), activities.control, _CONTROL_SLOTS, grace),
            _activity_worker(client, step_names.MAINTAIN_QUEUE, activities.service, _MAINTAIN_SLOTS),
            Worker(
                client,
                task_queue=names.CHATS_QUEUE,
                # Conversations that began before they had this queue are on the other one until they rest.
                workflows=[ServiceAgent],
                activities=making.chats,
                workflow_task_executor=executor,
                max_concurrent_workflow_tasks=_CALLS_AT_ONCE,
                max_concurrent_local_activities=_CALLS_AT_ONCE,
                max_concurrent_activities=_CHAT_SLOTS,
                activity_task_poller_behavior=PollerBehaviorSimpleMaximum(2),
                max_heartbeat_throttle_interval=HEARTBEAT_THROTTLE,
                default_heartbeat_throttle_interval=HEARTBEAT_THROTTLE,
                graceful_shutdown_timeout=_LAST,
                interceptors=[grace],
            ),
            _activity_worker(client, names.MAKING_QUEUE, making.asked, _SLOT_ASKERS),
            _activity_worker(client, step_names.making_queue(host), making.steps, _MAKING_SLOTS, grace),
            *(_activity_worker(client, bucket, call, tuner_of(slots, intake), grace) for bucket, slots in buckets.items()),
            *(_activity_worker(client, f"{host}/{bucket}", call, slots, grace) for bucket, slots in buckets.items()),
        ]
        tasks = [asyncio.create_task(worker.run(), name=f"worker {worker.task_queue}") for worker in workers]
        try:
            yield WorkerPool(workers, tasks)
        finally:
            try:
                await grace.idle()
            finally:
                # Also workers whose tasks have not begun yet: otherwise they would begin now and run for ever.
                await asyncio.gather(*(worker.shutdown() for worker in workers))
                await asyncio.gather(*tasks, return_exceptions=True)


def _activity_worker(client: Client, queue: str, activities: Steps, slots: int | WorkerTuner, grace: Grace | None = None) -> Worker:
    """With a grace, running activities are waited for."""
    is_tuned = isinstance(slots, WorkerTuner)
    return Worker(
        client,
        task_queue=queue,
        activities=activities,
        max_concurrent_activities=None if is_tuned else slots,
        tuner=slots if is_tuned else None,
        activity_task_poller_behavior=PollerBehaviorSimpleMaximum(2),
        max_heartbeat_throttle_interval=HEARTBEAT_THROTTLE,
        default_heartbeat_throttle_interval=HEARTBEAT_THROTTLE,
        graceful_shutdown_timeout=_LAST,
        interceptors=[grace] if grace else [],
    )
