"""Continues sessions of groups whose workflow was ended from outside, so that they stop."""

from collections.abc import Collection
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import structlog
from pydantic import ValidationError

from engine.groups.alerts import alert
from engine.store.events import EventTable
from engine.store.sessions import SessionTable
from engine.upkeep.rounds import repeated
from toolagent.contracts.sessions import SessionEnd
from toolagent.core.failures import StoreUnavailableError
from toolagent_service.contracts.sessions import SessionLife
from toolagent_service.groups.sessions import is_alert

_EVERY_S = 15.0
_ASK_EACH = 4
"""The first of so many rounds trusts no list, and looks for sessions without a row."""

_MOST_ASKED = 10
"""How often a workflow is asked to write its row: each time is an event of its history."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class SessionWorkflows(Protocol):
    """Every method but `under_way` raises ConnectionError if Temporal does not answer."""

    async def under_way(self) -> Collection[tuple[str, str]]:
        """Group and session ids that Temporal lists as under way. The list may be incomplete and some seconds old, and empty if Temporal
        does not answer."""
        ...

    async def is_under_way(self, group_id: str, session_id: str) -> bool: ...
    async def go_on(self, life: SessionLife) -> None:
        """Continues the session. Idempotent, also across hosts."""
        ...

    async def record(self, group_id: str, session_id: str) -> None:
        """Has the workflow write the row of its session if that is missing. The workflow may have ended."""
        ...


class SessionSweep:
    """A terminated workflow runs no code, so its launch would run for ever."""

    def __init__(self, sessions: SessionTable, workflows: SessionWorkflows, events: EventTable) -> None:
        self._sessions, self._workflows, self._events = sessions, workflows, events
        self._continued: dict[str, int] = {}
        """How often this process has continued each living session."""
        self._asked: dict[str, int] = {}
        """How often this process has asked each session for its row."""
        self._rounds = 0

    async def run(self) -> None:
        """One round. Raises ConnectionError, StoreUnavailableError."""
        living = await self._sessions.living_ids()
        self._continued = {session_id: self._continued[session_id] for _, session_id in living if session_id in self._continued}
        # One request instead of one for each session. A list that stays wrong must not leave anything running.
        is_trusted = self._rounds % _ASK_EACH != 0
        # Before anything that may fail: else a list that fails would be asked for in each round.
        self._rounds += 1
        listed = await self._workflows.under_way() if is_trusted and len(living) > 1 else ()
        for group_id, session_id in living:
            if (group_id, session_id) not in listed and not await self._workflows.is_under_way(group_id, session_id):
                await self._go_on(group_id, session_id)
        if not is_trusted:
            await self._record_missing()

    async def _record_missing(self) -> None:
        """After an older database was restored, sessions without a row go on. One that has not begun has none either, and writes none."""
        groups = {session_id: group_id for group_id, session_id in await self._workflows.under_way()}
        if not groups:
            return  # or Temporal does not list them now
        unknown = await self._sessions.unknown(groups.keys())
        self._asked = {session_id: times for session_id, times in self._asked.items() if session_id in unknown}
        for session_id in sorted(unknown):
            asked = self._asked.get(session_id, 0)
            if asked >= _MOST_ASKED:
                continue
            _log.info("session_without_row", group_id=groups[session_id], session_id=session_id, then="its workflow writes it")
            try:
                await self._workflows.record(groups[session_id], session_id)
            except ConnectionError:
                raise
            except Exception:  # noqa: BLE001 - one bad session must not keep others from their rows
                _log.warning("session_not_asked", session_id=session_id, exc_info=True)
            self._asked[session_id] = asked + 1

    async def _go_on(self, group_id: str, session_id: str) -> None:
        # Read again, now that no workflow writes it: it may have launched since it was listed, or ended normally.
        try:
            found = await self._sessions.whole(session_id)
        except ValidationError as error:
            await self._tell(group_id, session_id, error)
            return
        if found is None or found[1].ended_at is not None:
            return
        request, view = found
        _log.warning("session_without_workflow", group_id=view.group_id, session_id=session_id, then="it is stopped")
        why = "and ended each time before the stop. Temporal's UI shows why."
        try:
            await self._workflows.go_on(SessionLife(request=request, view=view, end=view.end or SessionEnd.CANCELLED))
        except ConnectionError:
            raise
        except Exception:  # noqa: BLE001 - one bad session must not block the stop of others
            _log.exception("session_not_begun", session_id=session_id, then="it is tried again")
            why = "and now could not be begun. The log shows why."
        times = self._continued[session_id] = self._continued.get(session_id, 0) + 1
        if is_alert(times):
            await self._tell_of_ends(group_id, session_id, times, why)

    async def _tell_of_ends(self, group_id: str, session_id: str, times: int, why: str) -> None:
        reason = f"Its workflow was to be continued {times} times, {why}"
        if not await self._is_told(f"continued-{times}", group_id, session_id, reason):
            self._continued[session_id] = times - 1  # the next time tells

    async def _tell(self, group_id: str, session_id: str, error: ValidationError) -> None:
        """The row is of another version. Its launch goes on until a host of that version continues the session."""
        wrong = error.errors(include_input=False, include_url=False)
        reason = f"It has no workflow, and its row cannot be read: {wrong}. Start a host of the version that wrote it."
        await self._is_told("unread", group_id, session_id, reason)

    async def _is_told(self, what: str, group_id: str, session_id: str, reason: str) -> bool:
        """Alerts an operator. False if the alert cannot be written: that must not keep other sessions from their stop."""
        try:
            await alert(self._events, f"{session_id}:{what}", "", reason, session_id=session_id, group_id=group_id)
        except StoreUnavailableError as error:
            _log.warning("session_not_told", session_id=session_id, what=what, reason=str(error), then="the next round tells it")
            return False
        return True


def sweeping_sessions(sweep: SessionSweep) -> AbstractAsyncContextManager[None]:
    """Sweeps at intervals until the block ends."""
    return repeated(sweep.run, _EVERY_S, "sessions of groups")
