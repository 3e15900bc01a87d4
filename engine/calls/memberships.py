"""Finds the session that a call belongs to, by the roles of its tool in groups with a lifecycle."""

import asyncio
import time
from collections.abc import Mapping
from typing import Protocol

from pydantic import JsonValue

from engine.calls.checks.asked import Asked
from engine.calls.endings import Refused
from engine.store.calls import CallTable
from engine.store.groups import GroupTable
from engine.store.sessions import SessionTable
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.groups import GroupRole, ToolGroup
from toolagent.contracts.sessions import SessionState, SessionView
from toolagent_service.contracts.steps import Grouped
from toolagent_service.groups.roles import Part, is_look, marks_in, names_session, parts_of, session_for
from toolagent_service.groups.sessions import GONE

_MAX_AGE_S = 1.0
"""How long groups are cached, so that calls of ordinary tools need no query."""

_USED = frozenset({SessionState.LAUNCHING, SessionState.READY})
_TO_STOP = _USED | {SessionState.STOPPING}


class Roles(Protocol):
    async def has_role(self, tool_id: str) -> bool:
        """Whether a call of the tool may belong to a session. Raises StoreUnavailableError."""
        ...


class Memberships:
    """Every method raises StoreUnavailableError."""

    def __init__(self, groups: GroupTable, sessions: SessionTable, calls: CallTable) -> None:
        self._groups, self._sessions, self._calls = groups, sessions, calls
        self._known: tuple[ToolGroup, ...] = ()
        self._parts: Mapping[str, tuple[Part, ...]] = {}
        self._read_at = float("-inf")
        self._reading: asyncio.Task[None] | None = None

    async def has_role(self, tool_id: str) -> bool:
        return bool(await self._parts_of(tool_id))

    async def of(self, asked: Asked, lasts_s: float) -> Grouped | None:
        """The session of the call, if it has one. Raises Refused for a launch, or a stop without bindings, whose session has ended."""
        parts = await self._parts_of(asked.manifest.tool_id)
        for part in parts:
            group, step = part
            if step.role is GroupRole.LAUNCH:
                return None if is_look(part, asked.call.params) else await self._launching(part, asked)
            view = await self._named(part, asked.call.params, asked.stops)
            if view is not None:
                version = view.versions.get(step.tool_id)
                return Grouped(role=step.role, group=group, session_id=view.session_id, host=view.host, version=version, lasts_s=lasts_s)
        return None

    async def _launching(self, part: Part, asked: Asked) -> Grouped:
        group, step = part
        session_id = session_for(group.group_id, asked.call_id)
        view = await self._sessions.get(session_id)
        if view is not None and view.ended_at is not None:
            message = f"Session {session_id} of this launch has ended. Call again."
            raise Refused(ErrorType.UNAVAILABLE, message, {"session_id": session_id, "group_id": group.group_id})
        return Grouped(role=step.role, group=group, session_id=session_id)

    async def _named(self, part: Part, params: Mapping[str, JsonValue], stops: str | None) -> SessionView | None:
        group, step = part
        states = _TO_STOP if step.role is GroupRole.STOP else _USED
        if not step.bindings:
            return await self._newest(group, stops) if step.role is GroupRole.STOP else None
        # In this order: a session that gets its marks between the two queries is found by the second.
        unnamed = await self._sessions.unnamed(group.group_id, states)
        for view in (*await self._sessions.named(marks_in(group, step, params), states), *unnamed):
            if names_session(step, await self._launched(view), params):
                return view
        return None

    async def _newest(self, group: ToolGroup, stops: str | None) -> SessionView | None:
        """The session that a stop without bindings stops: the newest one, or the one that it `stops` since it was asked for."""
        if stops is not None:
            view = await self._sessions.get(stops)
            if view is None:
                # An older database was restored. The session may live.
                message = (
                    f"Session {stops} of this stop has no row. If it still runs, its row is usually back within a minute. Then call again."
                )
                raise Refused(ErrorType.UNAVAILABLE, message, {"sent": False, "session_id": stops, "group_id": group.group_id})
            if view.ended_at is not None:
                message = f"Session {stops} of this stop has ended. Call again to stop the newest one that lives."
                details: dict[str, JsonValue] = {"reason": GONE, "sent": False, "session_id": stops, "group_id": group.group_id}
                raise Refused(ErrorType.EXECUTION_ERROR, message, details)
            return view if view.group_id == group.group_id else None
        living = await self._sessions.of_group(group.group_id, living=True)
        return next((view for view in living if view.state is not SessionState.LAUNCHING), None)

    async def _launched(self, view: SessionView) -> JsonValue:
        """The launch of the session. A caller may know it from the record before the session has noted it."""
        if view.state is not SessionState.LAUNCHING or view.launch_call_id is None:
            return view.launched
        record = await self._calls.get(view.launch_call_id)
        return record.result.result if record is not None and record.result is not None else None

    async def _parts_of(self, tool_id: str) -> tuple[Part, ...]:
        if time.monotonic() - self._read_at >= _MAX_AGE_S:
            # One read for all: thousands of concurrent calls would wait for the few connections.
            if self._reading is None:
                self._reading = asyncio.create_task(self._read(), name="read the groups")
                self._reading.add_done_callback(lambda task: task.cancelled() or task.exception())
            await asyncio.shield(self._reading)
        return self._parts.get(tool_id, ())

    async def _read(self) -> None:
        began_at = time.monotonic()
        try:
            if (found := await self._groups.with_lifecycle()) != self._known:
                self._known, self._parts = found, parts_of(found)
            self._read_at = began_at
        finally:
            self._reading = None
