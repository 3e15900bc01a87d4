"""The table `group_sessions`: sessions of groups, and whether they were stopped."""

from collections.abc import Collection, Sequence

import structlog
from pydantic import ValidationError
from sqlalchemy import ColumnElement, Row, func, or_, select, true, update

from engine.store.clock import timestamp
from engine.store.database import DatabaseAccess
from engine.store.rows.upserts import insert_new
from engine.store.session_names import forget_names, has_one_of_each, name_session, session_names
from engine.store.tables import calls, group_sessions
from toolagent.contracts.groups import ToolGroup
from toolagent.contracts.sessions import OpenSession, SessionState, SessionView
from toolagent_service.groups.roles import marks_of

column = group_sessions.c

_AT_ONCE = 1_000
"""Each is a parameter of a query."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class SessionUnreadableError(Exception):
    """Another version of the service wrote the session, and this one cannot read it."""

    def __init__(self, session_id: str, group_id: str) -> None:
        super().__init__(f"This version of the service cannot read session {session_id} of group {group_id!r}.")
        self.session_id = session_id


class SessionTable(DatabaseAccess):
    """Sessions, written repeatedly by their workflows. All methods raise StoreUnavailableError.

    Lists leave out rows of other versions of the service that this one cannot read. Methods for one row raise ValidationError instead.
    """

    async def open(self, request: OpenSession, view: SessionView, most: int | None) -> bool:
        """Record a session, if fewer than `most` of its group live. Returns whether it may begin. Idempotent."""
        row = {
            "session_id": view.session_id,
            "group_id": view.group_id,
            "request": request.model_dump_json(exclude_defaults=True),
            "opened_at": timestamp(view.opened_at),
            **_changing(view, request.group),
        }
        mine = column.session_id == view.session_id
        living = select(func.count()).select_from(group_sessions).where(column.group_id == view.group_id, _LIVES, ~mine)
        async with self._database.write(alone=f"sessions of {view.group_id}") as connection:
            if await connection.scalar(select(column.session_id).where(mine)) is not None:
                return True
            if most is not None and (await connection.scalar(living) or 0) >= most:
                return False
            await insert_new(connection, group_sessions, [row])
            if _has_launched(view) and not view.ended_at:
                await name_session(connection, view.session_id, marks_of(request.group, view.launched))
            return True

    async def note(self, view: SessionView, group: ToolGroup | None = None) -> bool:
        """Record the state of a session. `group` is the group as of its start. Returns whether the session has a row."""
        changed = update(group_sessions).filter_by(session_id=view.session_id).values(_changing(view, group))
        if not view.ended_at and not _has_launched(view):
            return await self._database.change(changed) > 0
        async with self._database.write() as connection:
            if (await connection.execute(changed)).rowcount == 0:
                return False
            if view.ended_at:
                await forget_names(connection, session_names.c.session_id == view.session_id)
            elif group is not None:
                await name_session(connection, view.session_id, marks_of(group, view.launched))
            return True

    async def unknown(self, session_ids: Collection[str]) -> frozenset[str]:
        """Those of these sessions that have no row."""
        asked = sorted(session_ids)
        parts = [asked[first : first + _AT_ONCE] for first in range(0, len(asked), _AT_ONCE)]
        known = [row for part in parts for row in await self._database.rows(select(column.session_id).where(column.session_id.in_(part)))]
        return frozenset(asked) - {session_id for (session_id,) in known}

    async def get(self, session_id: str) -> SessionView | None:
        return await self._database.document(SessionView, select(column.document).filter_by(session_id=session_id))

    async def whole(self, session_id: str) -> tuple[OpenSession, SessionView] | None:
        """A session with its request."""
        mine = column.session_id == session_id
        rows = await self._database.rows(select(column.request, column.document).where(mine))
        return next((_whole(request, view) for request, view in rows), None)

    async def of_group(self, group_id: str, *, living: bool = False, most: int = 100, all_of: bool = False) -> tuple[SessionView, ...]:
        """Sessions of a group, the newest first. With `all_of`, unreadable rows raise ValidationError."""
        lives = _LIVES if living else true()
        query = select(column.session_id, column.document).where(column.group_id == group_id, lives)
        ordered = query.order_by(column.opened_at.desc(), column.session_id).limit(most)
        rows = await self._database.rows(ordered)
        return tuple(SessionView.model_validate_json(view) for _, view in rows) if all_of else _views(rows)

    async def named(self, marks: Sequence[Collection[str]], states: Collection[SessionState]) -> tuple[SessionView, ...]:
        """Living sessions in one of these states that have one of each of the marks, the newest first.

        Of more than a hundred sets of marks, only the first hundred count.
        """
        # A mark belongs to one group. With a condition on the group, SQLite would scan all its sessions.
        return await self._in_states(states, has_one_of_each(marks)) if marks and all(marks) else ()

    async def unnamed(self, group_id: str, states: Collection[SessionState]) -> tuple[SessionView, ...]:
        """Sessions of a group in one of these states without marks, though their launch succeeded; the newest first."""
        launches = column.state == SessionState.LAUNCHING.value
        has_launched = select(calls.c.call_id).where(calls.c.call_id == column.unnamed, calls.c.is_success.is_(True)).exists()
        may_be = or_(~launches, column.unnamed == "", has_launched)
        return await self._in_states(states, column.group_id == group_id, _LIVES, column.unnamed.is_not(None), may_be)

    async def _in_states(self, states: Collection[SessionState], *which: ColumnElement[bool]) -> tuple[SessionView, ...]:
        mine = column.state.in_([state.value for state in states])
        query = select(column.session_id, column.document).where(mine, *which)
        return tuple(sorted(_views(await self._database.rows(query)), key=lambda view: view.opened_at, reverse=True))

    async def living_by_state(self) -> dict[str, int]:
        """Number of living sessions by state."""
        query = select(column.state, func.count()).where(_LIVES).group_by(column.state)
        return {state: number for state, number in await self._database.rows(query)}

    async def stopping(self, most: int = 100) -> tuple[SessionView, ...]:
        """Sessions that are being stopped, the oldest first."""
        stops = column.state == SessionState.STOPPING.value
        query = select(column.session_id, column.document).where(_LIVES, stops)
        ordered = query.order_by(column.opened_at, column.session_id).limit(most)
        return _views(await self._database.rows(ordered))

    async def living_ids(self) -> tuple[tuple[str, str], ...]:
        """Group and session ids of living sessions, the oldest first."""
        query = select(column.group_id, column.session_id).where(_LIVES).order_by(column.opened_at)
        return tuple((group_id, session_id) for group_id, session_id in await self._database.rows(query))

    async def living(self, *, all_of: bool = True) -> tuple[tuple[OpenSession, SessionView], ...]:
        """Living sessions of all groups with their requests, the oldest first. With `all_of`, unreadable rows raise
        SessionUnreadableError."""
        columns = column.session_id, column.group_id, column.request, column.document
        found = list[tuple[OpenSession, SessionView]]()
        for session_id, group_id, *texts in await self._database.rows(select(*columns).where(_LIVES).order_by(column.opened_at)):
            try:
                found.append(_whole(*texts))
            except ValidationError as error:
                if all_of:
                    raise SessionUnreadableError(session_id, group_id) from error
                _tell_unread(session_id, error)
        return tuple(found)


def _views(rows: Sequence[Row[str, str]]) -> tuple[SessionView, ...]:
    found = list[SessionView]()
    for session_id, view in rows:
        try:
            found.append(SessionView.model_validate_json(view))
        except ValidationError as error:
            _tell_unread(session_id, error)
    return tuple(found)


def _tell_unread(session_id: str, error: ValidationError) -> None:
    wrong = error.errors(include_input=False, include_url=False)
    _log.warning("session_not_read", session_id=session_id, wrong=wrong, then="it is left out")


def _whole(request: str, view: str) -> tuple[OpenSession, SessionView]:
    return OpenSession.model_validate_json(request), SessionView.model_validate_json(view)


_LIVES: ColumnElement[bool] = column.ended_at.is_(None)


def _has_launched(view: SessionView) -> bool:
    return view.state is not SessionState.LAUNCHING and view.launched is not None


def _changing(view: SessionView, group: ToolGroup | None) -> dict[str, object]:
    ended = timestamp(view.ended_at) if view.ended_at else None
    unnamed = None if _has_launched(view) and group is not None else view.launch_call_id or ""
    whole = {"state": view.state.value, "document": view.model_dump_json(), "unnamed": unnamed}
    return {**whole, "updated_at": timestamp(), "ended_at": ended}
