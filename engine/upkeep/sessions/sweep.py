"""Sessions of groups whose workflow somebody has ended: they go on, to their stop."""

from contextlib import AbstractAsyncContextManager
from typing import Protocol

import structlog
from pydantic import JsonValue, ValidationError

from engine.store.clock import now
from engine.store.events import LONGEST_ALERT, EventTable
from engine.store.sessions import SessionTable
from engine.upkeep.rounds import repeated
from toolagent.contracts.records import Event, EventType
from toolagent.contracts.sessions import SessionEnd
from toolagent_service.agents.coding_log import shown_text
from toolagent_service.contracts.sessions import SessionLife

_EVERY_S = 15.0

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class SessionWorkflows(Protocol):
    """Raises ConnectionError when Temporal cannot be asked now."""

    async def is_under_way(self, group_id: str, session_id: str) -> bool: ...
    async def go_on(self, life: SessionLife) -> None:
        """Harmless to repeat, also by another host at the same time."""
        ...


class SessionSweep:
    """A terminated workflow runs no code, and what was launched would run for ever."""

    def __init__(self, sessions: SessionTable, workflows: SessionWorkflows, events: EventTable) -> None:
        self._sessions, self._workflows, self._events = sessions, workflows, events

    async def run(self) -> None:
        """Once. Raises ConnectionError, StoreUnavailableError."""
        for group_id, session_id in await self._sessions.living_ids():
            if not await self._workflows.is_under_way(group_id, session_id):
                await self._go_on(group_id, session_id)

    async def _go_on(self, group_id: str, session_id: str) -> None:
        # As it is now that nobody writes it any more: it may have launched since it was listed, or ended in good order.
        try:
            found = await self._sessions.whole(session_id)
        except ValidationError as error:
            await self._tell(group_id, session_id, error)
            return
        if found is None or found[1].ended_at is not None:
            return
        request, view = found
        _log.warning("session_without_workflow", group_id=view.group_id, session_id=session_id, then="it is stopped")
        try:
            await self._workflows.go_on(SessionLife(request=request, view=view, end=SessionEnd.CANCELLED))
        except ConnectionError:
            raise
        except Exception:  # noqa: BLE001 - one that cannot be begun must not keep others from their stop
            _log.exception("session_not_begun", session_id=session_id, then="it is tried again")

    async def _tell(self, group_id: str, session_id: str, error: ValidationError) -> None:
        """Another version has written the row: what it launched goes on until a host of that version sees to it."""
        wrong = error.errors(include_input=False, include_url=False)
        reason = f"It has no workflow, and its row cannot be read: {wrong}. Start a host of the version that wrote it."
        details: JsonValue = {"session_id": session_id, "group_id": group_id, "reason": shown_text(reason, LONGEST_ALERT)}
        event_id = f"{session_id}:unread"
        await self._events.warn(Event(event_id=event_id, event_type=EventType.SESSION_ALERT, tool_id="", at=now(), details=details))


def sweeping_sessions(sweep: SessionSweep) -> AbstractAsyncContextManager[None]:
    """Until the block ends."""
    return repeated(sweep.run, _EVERY_S, "sessions of groups")
