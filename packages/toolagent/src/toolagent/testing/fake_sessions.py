"""Sessions of groups without a service: a launch returns its parameters."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from pydantic import JsonValue

from toolagent.client import names
from toolagent.client.failures import SessionRefusedError
from toolagent.contracts.calls import ErrorType, ToolResult
from toolagent.contracts.sessions import OpenSession, SessionEnd, SessionRun, SessionState, SessionView
from toolagent.core.calls.results import succeeded

__all__ = ["FakeSessions"]


@dataclass
class FakeSessions:
    """`opened` and `runs` have the requests, `views` the current sessions. `steps` are the tools that may run; empty: all.

    `is_gone` tells whether the caller of the last `open` has left.
    """

    opened: list[OpenSession] = field(default_factory=list[OpenSession])
    runs: list[SessionRun] = field(default_factory=list[SessionRun])
    views: dict[str, SessionView] = field(default_factory=dict[str, SessionView])
    steps: tuple[str, ...] = ()
    is_gone: Callable[[], Awaitable[bool]] | None = None

    async def open(self, request: OpenSession, *, again: bool = False, is_gone: Callable[[], Awaitable[bool]] | None = None) -> SessionView:
        """Raises SessionRefusedError."""
        self.is_gone = is_gone
        known = self.views.get(request.session_id)
        if known is not None and known.ended_at is None:
            return known
        if known is not None and not again:
            raise SessionRefusedError(names.SESSION_OVER, f"Session {request.session_id} has ended.")
        self.opened.append(request)
        at = datetime.now(UTC)
        view = self.views[request.session_id] = SessionView(
            session_id=request.session_id,
            group_id=request.group.group_id,
            state=SessionState.READY,
            caller=request.caller,
            launched=request.params,
            opened_at=at,
            launched_at=at,
            used_at=at,
            lease_ends_at=at + timedelta(seconds=request.lease_s) if request.lease_s else None,
        )
        return view

    async def run(self, group_id: str, session_id: str, run: SessionRun) -> ToolResult:
        """Raises SessionRefusedError."""
        view = await self.renew(group_id, session_id)
        if self.steps and run.tool_id not in {None, *self.steps}:
            raise SessionRefusedError(ErrorType.VALIDATION_ERROR, f"Group {group_id!r}: {run.tool_id!r} does not run in it.")
        self.runs.append(run)
        self.views[session_id] = view.model_copy(update={"runs": view.runs + 1})
        tool_id = run.tool_id or "run"
        return succeeded(f"call-{len(self.runs):08}", tool_id, run.params, datetime.now(UTC), execution_time=0.0, metadata={})

    async def stop(self, group_id: str, session_id: str) -> SessionView:
        """Raises SessionRefusedError."""
        if session_id not in self.views:
            raise SessionRefusedError(names.SESSION_OVER, f"There is no session {session_id} of {group_id}.")
        ended = {"state": SessionState.STOPPED, "end": SessionEnd.ASKED, "ended_at": datetime.now(UTC)}
        self.views[session_id] = self.views[session_id].model_copy(update=ended)
        return self.views[session_id]

    async def stop_left(self, group_id: str, session_id: str, life: dict[str, JsonValue]) -> SessionView:
        """Stops a session that continues from that recorded life. Raises SessionRefusedError."""
        left = SessionView.model_validate(life["view"])
        self.views[session_id] = left.model_copy(update={"session_id": session_id, "group_id": group_id})
        return await self.stop(group_id, session_id)

    async def renew(self, group_id: str, session_id: str) -> SessionView:
        """Raises SessionRefusedError."""
        view = self.views.get(session_id)
        if view is None or view.state is not SessionState.READY:
            raise SessionRefusedError(names.SESSION_OVER, f"Session {session_id} of {group_id} has ended.")
        return view

    async def view(self, group_id: str, session_id: str) -> SessionView | None:
        view = self.views.get(session_id)
        return view if view is not None and view.group_id == group_id else None
