"""Plays a path through a workflow: workers for its own queue and for those that it needs."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client, WorkflowHandle, WorkflowHistory
from temporalio.common import TypedSearchAttributes
from temporalio.worker import Interceptor, Worker

from workers.temporal.host_workers import WORKFLOWS
from workflows.outcome import OutcomeInterceptor

__all__ = ["AnyHandle", "Play", "Stage", "pauses_in", "reset"]

BEAT = timedelta(seconds=0.2)
LIFE = timedelta(seconds=300)

AnyHandle = WorkflowHandle[object, object]


@dataclass(frozen=True)
class Stage:
    """`queue` is the workflow's own, and is part of other names of the path. `task` is the time limit of its workflow tasks."""

    client: Client
    queue: str
    task: timedelta | None = None
    interceptors: tuple[Interceptor, ...] = ()

    @property
    def saying_outcomes(self) -> "Stage":
        """As on a server that knows the attribute."""
        return replace(self, interceptors=(OutcomeInterceptor(),))

    async def start(self, workflow: str, *inputs: object, workflow_id: str, attributes: TypedSearchAttributes | None = None) -> AnyHandle:
        return await self.client.start_workflow(
            workflow,
            args=inputs,
            id=workflow_id,
            task_queue=self.queue,
            execution_timeout=LIFE,
            task_timeout=self.task,
            search_attributes=attributes,
        )

    @asynccontextmanager
    async def workers(self, activities: Sequence[Callable[..., object]], *queues: str) -> AsyncGenerator[None]:
        """All workflows and these activities on our own queue, and the activities on the other queues too."""
        async with AsyncExitStack() as stack:
            for queue in (self.queue, *queues):
                worker = Worker(
                    self.client,
                    task_queue=queue,
                    workflows=WORKFLOWS if queue == self.queue else [],
                    activities=activities,
                    max_heartbeat_throttle_interval=BEAT,
                    interceptors=self.interceptors,
                )
                await stack.enter_async_context(worker)
            yield


Play = Callable[[Stage], Awaitable[AnyHandle]]
"""Plays one path: the handle of a workflow that has ended."""


def pauses_in(history: WorkflowHistory) -> list[float]:
    """The timers of its history, in seconds."""
    started = (event.timer_started_event_attributes for event in history.events if event.HasField("timer_started_event_attributes"))
    return [one.start_to_fire_timeout.ToTimedelta().total_seconds() for one in started]


async def reset(temporal: Client, handle: AnyHandle) -> AnyHandle:
    """Reset to the beginning. Returns the new run."""
    first = WorkflowExecution(workflow_id=handle.id, run_id=handle.first_execution_run_id or "")
    ended = [event.event_id async for event in handle.fetch_history_events() if event.HasField("workflow_task_completed_event_attributes")]
    request = ResetWorkflowExecutionRequest(
        namespace=temporal.namespace, workflow_execution=first, reason="a test", workflow_task_finish_event_id=ended[0], request_id="a test"
    )
    await temporal.workflow_service.reset_workflow_execution(request)
    return temporal.get_workflow_handle(handle.id)
