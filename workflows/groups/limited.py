"""The limits and the lease that end a session, and the uses that keep it."""

import asyncio
from datetime import datetime

from temporalio import workflow

from toolagent.contracts.calls import ToolResult
from toolagent.contracts.sessions import SessionEnd
from toolagent_service.contracts.sessions import SessionLife, SessionUse
from toolagent_service.groups import sessions
from workflows.groups.noted import NotedSession

_MOST_RUNS = 1_000
"""The most runs of the session in one run of the workflow."""


class LimitedSession(NotedSession):
    """`_running` are running calls of the session, `_uses` those made outside of it; `_changes` counts events that may move its end."""

    def __init__(self, life: SessionLife) -> None:
        super().__init__(life)
        self._is_bound = False
        self._running: dict[tuple[str, str], asyncio.Task[ToolResult]] = {}
        self._uses = dict(life.uses)
        self._runs, self._changes = 0, 0

    def use(self, use: SessionUse) -> None:
        """A call made outside of the session begins or has ended. It counts like a run of the session."""
        if use.until is not None:
            self._uses[use.call_id] = use.until
        elif self._uses.pop(use.call_id, None) is not None:
            self._note_use()
        self._changes += 1

    def renew(self) -> None:
        """Begin the lease again, if there is one."""
        self._change(lease_ends_at=self._lease_end)
        self._changes += 1

    def _note_use(self) -> None:
        self._change(used_at=workflow.now(), runs=self.view.runs + 1, lease_ends_at=self._lease_end)

    async def _limited(self) -> None:
        """Watch the limits and the lease during a launch."""
        while self.end is None:
            await self._watch()

    async def _watch(self) -> bool:
        """Wait for an event (then True), a limit, or the end of an outside use.

        Events that only delay the end do not count, because a new timer costs as much as a call.
        """
        self._uses = {call_id: until for call_id, until in self._uses.items() if until > workflow.now()}
        end, soonest, seen = self._limit, self._soonest, self._changes
        if end is not None and end[0] <= workflow.now():
            self.ask(end[1])
            return False
        timeout = soonest - workflow.now() if soonest is not None else None
        try:
            await workflow.wait_condition(
                lambda: self.end is not None or (self._changes != seen and (not self._is_bound or self._is_to_look(soonest))),
                timeout=timeout,
                timeout_summary=f"limit: {end[1]}" if end is not None else "a call beside it",
            )
        except TimeoutError:
            return False
        return True

    @property
    def _limit(self) -> tuple[datetime, SessionEnd] | None:
        return sessions.end_at(self._request.group, self.view, is_used=bool(self._running or self._uses))

    @property
    def _soonest(self) -> datetime | None:
        end = self._limit
        return min([*self._uses.values(), *([end[0]] if end is not None else [])], default=None)

    @property
    def _is_used_up(self) -> bool:
        return self._runs >= _MOST_RUNS or workflow.info().is_continue_as_new_suggested()

    def _is_to_look(self, at: datetime | None) -> bool:
        """Whether the session must be looked at before that time."""
        soonest = self._soonest
        return self._is_used_up or (soonest is not None and (at is None or soonest < at))
