"""Tasks that make or repair tools, over Temporal: start, cancel and guide them by their id."""

from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta

from temporalio.client import Client, WorkflowHandle
from temporalio.common import SearchAttributePair, TypedSearchAttributes, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from toolagent.client import names
from toolagent.client.failures import MakingUnreachableError
from toolagent.client.patience import is_away
from toolagent.contracts.making import Guidance, MakeRequest
from toolagent.contracts.task_specs import BuildTool, GithubDeploy, RepairTool
from toolagent.core.failures import TaskConflictError
from toolagent.core.task_requests import request_fingerprint, subject_of

__all__ = ["Making"]

_RPC_TIMEOUT = timedelta(seconds=5)


class Making:
    """Starts and controls tasks; their state is in their rows. Every method raises MakingUnreachableError."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def start(self, request: MakeRequest) -> None:
        """Start the task durably. The same request again is the same task.

        Raises TaskConflictError when the id belongs to another request.
        """
        with _reached():
            try:
                await self._start(request)
            except WorkflowAlreadyStartedError:
                description = await self._handle(request.task_id).describe(rpc_timeout=_RPC_TIMEOUT)
                if await description.memo_value(names.FINGERPRINT, "", type_hint=str) != request_fingerprint(request):
                    raise TaskConflictError(request.task_id) from None

    async def cancel(self, task_id: str) -> bool:
        """Cancel a task; False when Temporal does not know it. An ended task stays as it is."""
        with _reached():
            try:
                await self._handle(task_id).cancel(rpc_timeout=_RPC_TIMEOUT)
            except RPCError as error:
                if error.status is RPCStatusCode.NOT_FOUND:
                    return False
                raise
        return True

    async def guide(self, task_id: str, guidance: Guidance) -> bool:
        """Send guidance to a running task; False when it does not run (any more)."""
        with _reached():
            try:
                await self._handle(task_id).signal(names.GUIDE, guidance, rpc_timeout=_RPC_TIMEOUT)
            except RPCError as error:
                if error.status is RPCStatusCode.NOT_FOUND:
                    return False
                raise
        return True

    async def _start(self, request: MakeRequest) -> None:
        spec, caller = request.spec, request.caller.caller_id
        found_by = [SearchAttributePair(names.TOOL_ID, subject_of(spec)), SearchAttributePair(names.TASK_TYPE, spec.type)]
        # No time limit: how long it may take is the task's own affair, which cleans up after itself.
        await self._client.start_workflow(
            _workflow_for(spec),
            request,
            id=request.task_id,
            task_queue=names.TASK_QUEUE,
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            memo={names.FINGERPRINT: request_fingerprint(request)},
            search_attributes=TypedSearchAttributes(found_by + ([SearchAttributePair(names.CALLER, caller)] if caller else [])),
            static_summary=f"{spec.type} {subject_of(spec)}",
            rpc_timeout=_RPC_TIMEOUT,
        )

    def _handle(self, task_id: str) -> WorkflowHandle[object, object]:
        return self._client.get_workflow_handle(task_id)


def _workflow_for(spec: GithubDeploy | BuildTool | RepairTool) -> str:
    return names.REPAIR_TOOL if isinstance(spec, RepairTool) else names.CREATE_TOOL


@contextmanager
def _reached() -> Generator[None]:
    try:
        yield
    except RPCError as error:
        if not is_away(error):
            raise
        raise MakingUnreachableError(f"Temporal does not answer ({error.status.name}).") from error
