"""The workflows of sessions, for the sweeps that maintain them."""

from collections.abc import Generator
from contextlib import contextmanager

import structlog
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.service import RPCError

from toolagent.client import names
from toolagent.client.failures import AnswerPendingError
from toolagent.client.patience import described, if_known, is_away
from toolagent.client.temporal import ToolAgentClient
from toolagent.contracts.calls import ToolCall, ToolResult
from toolagent_service import step_names
from toolagent_service.contracts.sessions import SessionLife

_PARTS = 3
"""See `names.session_workflow`."""

_MOST = 10_000
"""Sessions beyond these are asked for one by one."""

_log = structlog.stdlib.get_logger(__name__)


class SessionWorkflows:
    """See `engine.upkeep.sessions.sweep.SessionWorkflows`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def under_way(self) -> frozenset[tuple[str, str]]:
        query = f"WorkflowType = '{names.TOOL_GROUP}' AND ExecutionStatus = 'Running'"
        try:
            found = [one.id.split("/") async for one in self._client.list_workflows(query, limit=_MOST)]
        except RPCError as error:
            _log.info("sessions_not_listed", reason=str(error), then="each is asked for")
            return frozenset()
        return frozenset((parts[1], parts[2]) for parts in found if len(parts) == _PARTS and parts[0] == "group")

    async def is_under_way(self, group_id: str, session_id: str) -> bool:
        with _reached():
            description = await described(self._client.get_workflow_handle(names.session_workflow(group_id, session_id)))
        return description is not None and description.status is WorkflowExecutionStatus.RUNNING

    async def record(self, group_id: str, session_id: str) -> None:
        with _reached(), if_known():
            await self._client.get_workflow_handle(names.session_workflow(group_id, session_id)).signal(step_names.RECORD_SESSION)

    async def listed(self, call: ToolCall) -> ToolResult:
        """See `engine.upkeep.sessions.providers.Listing`."""
        try:
            return await ToolAgentClient(self._client).run(call)
        except AnswerPendingError as error:
            raise ConnectionError(str(error)) from error

    async def go_on(self, life: SessionLife) -> None:
        group_id = life.request.group.group_id
        with _reached():
            await self._client.start_workflow(
                names.TOOL_GROUP,
                life,
                id=names.session_workflow(group_id, life.request.session_id),
                task_queue=names.TASK_QUEUE,
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                static_summary=group_id,
            )


@contextmanager
def _reached() -> Generator[None]:
    try:
        yield
    except RPCError as error:
        if not is_away(error):
            raise
        raise ConnectionError(str(error)) from error
