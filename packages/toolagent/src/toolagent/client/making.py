"""Tasks that make or repair tools, over Temporal: start, cancel and guide them by their id."""

from datetime import timedelta

from temporalio.client import Client, WorkflowHandle
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError

from toolagent.client import names
from toolagent.client.child import found_by
from toolagent.client.failures import MakingUnreachableError
from toolagent.client.patience import if_known, reached
from toolagent.contracts.making import Guidance, MakeRequest
from toolagent.contracts.task_specs import RepairTool
from toolagent.core.failures import TaskConflictError
from toolagent.core.task_requests import AskedOtherwiseError, request_fingerprint, subject_of

__all__ = ["Making"]

_RPC_TIMEOUT = timedelta(seconds=5)


class Making:
    """Starts and controls tasks. Their state is in the database. Every method raises MakingUnreachableError."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def start(self, request: MakeRequest) -> None:
        """Start the task durably. The same request again is the same task.

        Raises AskedOtherwiseError if the id belongs to another request, TaskConflictError if that request cannot be read here.
        """
        with reached(MakingUnreachableError):
            try:
                await self._start(request)
            except WorkflowAlreadyStartedError:
                description = await self._handle(request.task_id).describe(rpc_timeout=_RPC_TIMEOUT)
                if await description.memo_value(names.FINGERPRINT, "", type_hint=str) != request_fingerprint(request):
                    raise AskedOtherwiseError(await self._asked(request.task_id)) from None

    async def cancel(self, task_id: str) -> bool:
        """Ask a task to end. False if Temporal does not know it; a task that has ended stays unchanged."""
        with reached(MakingUnreachableError), if_known():
            await self._handle(task_id).cancel(rpc_timeout=_RPC_TIMEOUT)
            return True
        return False

    async def guide(self, task_id: str, guidance: Guidance) -> bool:
        """Send guidance to a running task. False if it does not run (any more)."""
        with reached(MakingUnreachableError), if_known():
            await self._handle(task_id).signal(names.GUIDE, guidance, rpc_timeout=_RPC_TIMEOUT)
            return True
        return False

    async def _start(self, request: MakeRequest) -> None:
        spec = request.spec
        # No time limit here: the task has its own, and cleans up after itself.
        await self._client.start_workflow(
            names.REPAIR_TOOL if isinstance(spec, RepairTool) else names.CREATE_TOOL,
            request,
            id=request.task_id,
            task_queue=names.TASK_QUEUE,
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            memo={names.FINGERPRINT: request_fingerprint(request)},
            search_attributes=found_by(spec.type, subject_of(spec), request.caller.caller_id),
            static_summary=f"{spec.type} {subject_of(spec)}",
            rpc_timeout=_RPC_TIMEOUT,
        )

    async def _asked(self, task_id: str) -> MakeRequest:
        """What the workflow was started with."""
        started = await anext(aiter(self._handle(task_id).fetch_history_events(page_size=1, rpc_timeout=_RPC_TIMEOUT)))
        given = started.workflow_execution_started_event_attributes.input.payloads
        try:
            (asked,) = await self._client.data_converter.decode(given, [MakeRequest])
        except (
            ValueError,
            RuntimeError,
            LookupError,
            AttributeError,
        ) as error:  # of another version, or encrypted
            raise TaskConflictError(task_id) from error
        return asked

    def _handle(self, task_id: str) -> WorkflowHandle[object, object]:
        return self._client.get_workflow_handle(task_id)
