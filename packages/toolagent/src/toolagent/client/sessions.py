"""Sessions of groups over Temporal: open, use, stop and look at them."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
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
"""How long a worker may take to answer a query about a session. Without a worker, the server would let the query wait."""
_DRAINS_S = (0.1,) * 40 + (1.0,) * 56
"""Pauses before a session is asked again while its workflow continues as a new run, in seconds: it waits for calls that run."""
_RENEWED_S = 1.0
"""The shortest pause between renewals of a lease."""


class Sessions:
    """The methods of `ToolAgentClient` for sessions. All raise SessionUnreachableError.

    A call that waits for a provider waits without a time limit while a worker is there.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    async def open(self, request: OpenSession, *, again: bool = False, is_gone: Asked | None = None) -> SessionView:
        """The session once its launch has succeeded or failed. The same id again is the same session.

        While this waits, it renews the lease of the session, if any, unless the caller that waits `is_gone`.

        `again`: if the session with this id has ended, begin a new one. Raises SessionRefusedError.
        """
        life: dict[str, JsonValue] = {"request": request.model_dump(mode="json", exclude_defaults=True)}
        renewals = asyncio.create_task(self._renewed(request, is_gone))
        try:
            return await self._begun(request.group.group_id, request.session_id, life, names.SESSION, again=again)
        finally:
            renewals.cancel()

    async def stop_left(self, group_id: str, session_id: str, life: dict[str, JsonValue]) -> SessionView:
        """Stop a session whose workflow was ended from outside: a new run continues with `life`. Raises SessionRefusedError."""
        return await self._begun(group_id, session_id, life, names.STOP_SESSION, again=True)

    async def run(self, group_id: str, session_id: str, run: SessionRun) -> ToolResult:
        """The result of one call in a session. Raises SessionRefusedError."""
        return await self._updated(group_id, session_id, names.RUN_IN_SESSION, run, ToolResult)

    async def stop(self, group_id: str, session_id: str) -> SessionView:
        """The session once it has stopped, or still stopping if the provider takes long. Raises SessionRefusedError."""
        return await self._updated(group_id, session_id, names.STOP_SESSION, None, SessionView)

    async def renew(self, group_id: str, session_id: str) -> SessionView:
        """The session, with its lease renewed. Raises SessionRefusedError."""
        return await self._updated(group_id, session_id, names.RENEW_SESSION, None, SessionView)

    async def view(self, group_id: str, session_id: str) -> SessionView | None:
        """The current state of the session; None if Temporal does not know it."""
        with reached(SessionUnreachableError), if_known():
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
        async def ask() -> SessionView:
            start: WithStartWorkflowOperation[Any, Any] = WithStartWorkflowOperation(
                names.TOOL_GROUP,
                life,
                id=names.session_workflow(group_id, session_id),
                task_queue=names.TASK_QUEUE,
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE if again else WorkflowIDReusePolicy.REJECT_DUPLICATE,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                static_summary=group_id,
            )
            with starting(start):
                asked = self._client.execute_update_with_start_workflow(update, start_workflow_operation=start, result_type=SessionView)
                return await attended(asked, self._handle(group_id, session_id), names.SESSION, SessionUnreachableError)

        try:
            return await _answer(ask)
        except WorkflowAlreadyStartedError as error:
            raise SessionRefusedError(names.SESSION_OVER, f"Session {session_id} has ended.") from error

    async def _updated(self, group_id: str, session_id: str, update: str, argument: Contract | None, result_type: type[T]) -> T:
        handle = self._handle(group_id, session_id)

        def ask() -> Awaitable[T]:
            asked = handle.execute_update(update, argument, result_type=result_type)
            return attended(asked, handle, names.SESSION, SessionUnreachableError)

        try:
            return await _answer(ask)
        except RPCError as error:
            # Temporal says the same of a workflow that has ended.
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            raise SessionRefusedError(names.SESSION_OVER, f"Session {session_id} has ended, or never was.") from error

    def _handle(self, group_id: str, session_id: str) -> WorkflowHandle[object, object]:
        return self._client.get_workflow_handle(names.session_workflow(group_id, session_id))


async def _answer(ask: Callable[[], Awaitable[T]]) -> T:
    """The answer of the session. While its workflow continues as a new run, it is asked again."""
    for pause_s in _DRAINS_S:
        try:
            with reached(SessionUnreachableError):
                return await ask()
        except WorkflowUpdateFailedError as error:
            if not (isinstance(error.cause, ApplicationError) and error.cause.type == names.SESSION_DRAINS):
                raise _refused(error) from error
        await asyncio.sleep(pause_s)
    raise SessionUnreachableError("A call of the session runs that it waits for, before it goes on in a new run. Ask again.")


def _refused(error: WorkflowUpdateFailedError) -> SessionRefusedError:
    """Raises the error itself if it is not one of the session."""
    cause = error.cause
    if not isinstance(cause, ApplicationError):
        raise error
    return SessionRefusedError(cause.type or ErrorType.EXECUTION_ERROR.value, cause.message)
