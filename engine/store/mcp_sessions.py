"""The tables `mcp_sessions` and `mcp_requests`: sessions of MCP clients, and the calls of their running requests."""

import json
from collections.abc import Callable
from datetime import timedelta

from sqlalchemy import delete, select, update

from engine.store.clock import now, timestamp
from engine.store.database import DatabaseAccess
from engine.store.mcp_tables import mcp_requests, mcp_sessions
from engine.store.rows.upserts import insert_new, upsert
from toolagent_service.contracts.mcp import McpSession

_AT_ONCE = 500
"""Sessions per transaction: SQLite has one writer, and calls wait for it."""


class McpSessionTable(DatabaseAccess):
    """All raise StoreUnavailableError."""

    async def open(self, session: McpSession) -> None:
        moment = timestamp(session.opened_at)
        row = {"session_id": session.session_id, "document": session.model_dump_json(), "opened_at": moment, "seen_at": moment}
        async with self._database.write_once() as connection:
            await insert_new(connection, mcp_sessions, [row])

    async def get(self, session_id: str) -> McpSession | None:
        return await self._database.document(McpSession, select(mcp_sessions.c.document).filter_by(session_id=session_id))

    async def change(self, session_id: str, edit: Callable[[McpSession], McpSession]) -> McpSession | None:
        """Replace the session by `edit` of it. None if it is closed. If `edit` raises, nothing changes."""
        mine = mcp_sessions.c.session_id == session_id
        async with self._database.write() as connection:
            text = await connection.scalar(select(mcp_sessions.c.document).where(mine).with_for_update())
            if text is None:
                return None
            session = edit(McpSession.model_validate_json(text))
            changed = update(mcp_sessions).where(mine).values(document=session.model_dump_json(), seen_at=timestamp())
            await connection.execute(changed)
            return session

    async def touch(self, session_id: str) -> None:
        """Restart its idle time."""
        seen = update(mcp_sessions).filter_by(session_id=session_id).values(seen_at=timestamp())
        await self._database.change(seen)

    async def close(self, session_id: str) -> None:
        """Close a session, if it is open. Its calls go on."""
        async with self._database.write() as connection:
            await connection.execute(delete(mcp_requests).filter_by(session_id=session_id))
            await connection.execute(delete(mcp_sessions).filter_by(session_id=session_id))

    async def expire(self, idle: timedelta) -> int:
        """Close sessions that were idle for this long. Returns how many."""
        is_idle, closed = mcp_sessions.c.seen_at < timestamp(now() - idle), 0
        while True:
            async with self._database.write() as connection:
                gone = (await connection.scalars(select(mcp_sessions.c.session_id).where(is_idle).limit(_AT_ONCE))).all()
                await connection.execute(delete(mcp_requests).where(mcp_requests.c.session_id.in_(gone)))
                await connection.execute(delete(mcp_sessions).where(mcp_sessions.c.session_id.in_(gone)))
            closed += len(gone)
            if len(gone) < _AT_ONCE:
                return closed

    async def is_subscribed(self, uri: str) -> bool:
        """Whether any session has subscribed to this URI."""
        written = json.dumps(uri, ensure_ascii=False)
        maybe = select(mcp_sessions.c.document).where(mcp_sessions.c.document.contains(written, autoescape=True))
        return any(uri in McpSession.model_validate_json(text).subscriptions for text in await self._database.scalars(maybe))

    async def begin_request(self, session_id: str, request_id: str, call_id: str) -> None:
        """Record the call of a running request: its cancellation may reach another front door."""
        async with self._database.write_once() as connection:
            await upsert(connection, mcp_requests, {"session_id": session_id, "request_id": request_id, "call_id": call_id})

    async def end_request(self, session_id: str, request_id: str) -> None:
        await self._database.change(delete(mcp_requests).filter_by(session_id=session_id, request_id=request_id))

    async def call_of(self, session_id: str, request_id: str) -> str | None:
        """The call of a running request."""
        return await self._database.scalar(select(mcp_requests.c.call_id).filter_by(session_id=session_id, request_id=request_id))
