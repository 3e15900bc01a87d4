"""Sessions of groups over Temporal: open, use, stop and look at them."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, suppress
from datetime import timedelta
from typing import Any, TypeAlias, TypeVar

from pydantic import JsonValue
from temporalio.client import Client, WithStartWorkflowOperation, WorkflowHandle, WorkflowUpdateFailedError
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from toolagent.client import names
from toolagent.client.failures import SessionRefusedError, SessionUnreachableError
from toolagent.client.patience import if_known, queried, reached, starting
from toolagent.client.updates import attended
from toolagent.contracts.calls import ErrorType, ToolResult
from toolagent.contracts.contract import Contract
from toolagent.contracts.sessions import OpenSession, SessionRun, SessionView

__all__ = ["Sessions"]

T = TypeVar("T", bound=Contract)
Asked: TypeAlias = Callable[[], Awaitable[bool]]

_LOOK = timedelta(seconds=2)
"""So long a worker may take to say how a session is; without one the server would let a query wait on."""
_ASKED, _DRAINS_S = 40, 0.1
"""How often a session is asked while it goes on as a new run of its workflow, and the pause between."""
_RENEWED_S = 1.0
"""The shortest pause between renewals of a lease."""

_NOT_ON = "The session has not gone on in a new run."


class Sessions:
    """Every method raises SessionUnreachableError; what waits for a provider waits as long as that takes,
    while a worker is there.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    async def open(self, request: OpenSession, *, again: bool = False, is_gone: Asked | None = None) -> SessionView:
        """The session once it is launched, or could not be. The same id again is the same session.

        Its lease, where it has one, is renewed as long as this waits, unless whoever waits for it `is_gone`.

        Raises SessionRefusedError; `again` begins one with this id anew where it has ended.
        """
        life: dict[str, JsonValue] = {"request": request.model_dump(mode="json", exclude_defaults=True)}
        renewals = asyncio.create_task(self._renewed(request, is_gone))
        try:
            return await self._begun(request.group.group_id, request.session_id, life, names.SESSION, again=again)
        finally:
            renewals.cancel()

    async def stop_left(self, group_id: str, session_id: str, life: dict[str, JsonValue]) -> SessionView:
        """As `stop`, of a session whose workflow somebody has ended: it goes on with `life`. Raises SessionRefusedError."""
        return await self._begun(group_id, session_id, life, names.STOP_SESSION, again=True)

    async def run(self, group_id: str, session_id: str, run: SessionRun) -> ToolResult:
        """The result of one call in a session. Raises SessionRefusedError."""
        return await self._updated(group_id, session_id, names.RUN_IN_SESSION, run, ToolResult)

    async def stop(self, group_id: str, session_id: str) -> SessionView:
        """The session once it has stopped, or still stopping where the provider takes long. Raises SessionRefusedError."""
        return await self._updated(group_id, session_id, names.STOP_SESSION, None, SessionView)

    async def renew(self, group_id: str, session_id: str) -> SessionView:
        """The session, its lease begun anew. Raises SessionRefusedError."""
        return await self._updated(group_id, session_id, names.RENEW_SESSION, None, SessionView)

    async def view(self, group_id: str, session_id: str) -> SessionView | None:
        """The session as it is; None when Temporal does not know it."""
        with _reached(), if_known():
            return await queried(self._handle(group_id, session_id), names.SESSION, SessionView, _LOOK)
        return None

    async def _renewed(self, request: OpenSession, is_gone: Asked | None) -> None:
        while request.lease_s is not None:
            await asyncio.sleep(max(request.lease_s / 3, _RENEWED_S))
            if is_gone is not None and await is_gone():
                return
            with suppress(SessionRefusedError, SessionUnreachableError):
                await self.renew(request.group.group_id, request.session_id)

    async def _begun(self, group_id: str, session_id: str, life: dict[str, JsonValue], update: str, *, again: bool) -> SessionView:
        for _ in range(_ASKED):
            start: WithStartWorkflowOperation[Any, Any] = WithStartWorkflowOperation(
                names.TOOL_GROUP,
                life,
                id=names.session_workflow(group_id, session_id),
                task_queue=names.TASK_QUEUE,
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE if again else WorkflowIDReusePolicy.REJECT_DUPLICATE,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                static_summary=group_id,
            )
            try:
                with _reached(), starting(start):
                    asked = self._client.execute_update_with_start_workflow(update, start_workflow_operation=start, result_type=SessionView)
                    return await attended(asked, self._handle(group_id, session_id), names.SESSION, _unreachable)
            except WorkflowAlreadyStartedError as error:
                raise SessionRefusedError(names.SESSION_OVER, f"Session {session_id} has ended.") from error
            except WorkflowUpdateFailedError as error:
                if not _drains(error):
                    raise _refused(error) from error
            await asyncio.sleep(_DRAINS_S)
        raise SessionUnreachableError(_NOT_ON)

    async def _updated(self, group_id: str, session_id: str, update: str, argument: Contract | None, result_type: type[T]) -> T:
        for _ in range(_ASKED):
            try:
                with _reached():
                    handle = self._handle(group_id, session_id)
                    asked = handle.execute_update(update, argument, result_type=result_type)
                    return await attended(asked, handle, names.SESSION, _unreachable)
            except WorkflowUpdateFailedError as error:
                if not _drains(error):
                    raise _refused(error) from error
            except RPCError as error:
                # Also of a workflow that has ended.
                if error.status is not RPCStatusCode.NOT_FOUND:
                    raise
                raise SessionRefusedError(names.SESSION_OVER, f"Session {session_id} has ended, or never was.") from error
            await asyncio.sleep(_DRAINS_S)
        raise SessionUnreachableError(_NOT_ON)

    def _handle(self, group_id: str, session_id: str) -> WorkflowHandle[object, object]:
        return self._client.get_workflow_handle(names.session_workflow(group_id, session_id))


def _drains(error: WorkflowUpdateFailedError) -> bool:
    return isinstance(error.cause, ApplicationError) and error.cause.type == names.SESSION_DRAINS


def _refused(error: WorkflowUpdateFailedError) -> SessionRefusedError:
    """Raises the error itself where the session has said nothing."""
    cause = error.cause
    if not isinstance(cause, ApplicationError):
        raise error
    return SessionRefusedError(cause.type or ErrorType.EXECUTION_ERROR.value, cause.message)


def _reached() -> AbstractContextManager[None]:
    return reached(_unreachable)


def _unreachable(reason: str) -> SessionUnreachableError:
    return SessionUnreachableError(f"{reason}.")
