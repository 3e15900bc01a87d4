"""Sessions of the older revision, kept in the database and cached for moments."""

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from api.json_object import JsonObject
from api.ports import McpSessions
from toolagent_service.contracts.mcp import McpSession

_FRESH_S = 5.0
"""How long a session that another process closed may still be open here."""

_TOUCHED_S = 60.0
_MOST = 1000
"""The most cached sessions."""


@dataclass(slots=True)
class _Remembered:
    session: McpSession
    read_at: float
    touched_at: float


class ClientSessions:
    """All methods raise StoreUnavailableError."""

    def __init__(self, table: McpSessions) -> None:
        self._table = table
        self._remembered: OrderedDict[str, _Remembered] = OrderedDict()

    async def open(self, protocol_version: str, client: JsonObject) -> McpSession:
        opened_at = datetime.now(UTC)
        session = McpSession(session_id=secrets.token_hex(16), protocol_version=protocol_version, client=client, opened_at=opened_at)
        await self._table.open(session)
        self._remember(session, time.monotonic())
        return session

    async def get(self, session_id: str) -> McpSession | None:
        """None for a session that was closed, has expired or does not exist."""
        known, moment = self._remembered.get(session_id), time.monotonic()
        if known is None or moment - known.read_at > _FRESH_S:
            session = await self._table.get(session_id)
            if session is None:
                self._remembered.pop(session_id, None)
                return None
            known = self._remember(session, known.touched_at if known else float("-inf"))
        if moment - known.touched_at > _TOUCHED_S:
            known.touched_at = moment
            await self._table.touch(session_id)
        return known.session

    async def change(self, session_id: str, edit: Callable[[McpSession], McpSession]) -> None:
        """Edit a session, beside concurrent edits. A closed session stays closed."""
        session = await self._table.change(session_id, edit)
        if session is None:
            self._remembered.pop(session_id, None)
            return
        self._remember(session, time.monotonic())

    async def close(self, session_id: str) -> None:
        self._remembered.pop(session_id, None)
        await self._table.close(session_id)

    def _remember(self, session: McpSession, touched_at: float) -> _Remembered:
        known = self._remembered[session.session_id] = _Remembered(session, time.monotonic(), touched_at)
        self._remembered.move_to_end(session.session_id)
        while len(self._remembered) > _MOST:
            self._remembered.popitem(last=False)
        return known
