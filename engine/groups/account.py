"""The account of a session: its row, and an event where the provider does not confirm a stop."""

import hashlib

from pydantic import JsonValue

from engine.store.clock import now
from engine.store.events import LONGEST_ALERT, EventTable
from engine.store.groups import GroupTable
from engine.store.sessions import SessionTable
from engine.store.tools import ToolTable
from toolagent.contracts.groups import GroupRole, ToolGroup
from toolagent.contracts.records import Event, EventType
from toolagent.contracts.sessions import SessionView
from toolagent_service.agents.coding_log import shown_text
from toolagent_service.contracts.sessions import OpenStep, SessionStep
from toolagent_service.groups.sessions import launched_by

_MOST_OTHERS = 1_000


class SessionAccounts:
    def __init__(self, groups: GroupTable, sessions: SessionTable, events: EventTable, tools: ToolTable) -> None:
        self._groups, self._sessions, self._events, self._tools = groups, sessions, events, tools

    async def group(self, group_id: str) -> ToolGroup | None:
        return await self._groups.get(group_id)

    async def open(self, step: OpenStep) -> bool | SessionView:
        """Whether it may begin. The session as it is where its launch is noted, of which its workflow knows nothing.

        That one was reset, or its first task is made again: then the launch may never have been made.
        """
        if not await self._sessions.open(step.request, step.view, step.request.group.limits.max_sessions):
            return False
        known = await self._sessions.get(step.view.session_id) if step.view.launch_call_id is None else None
        return known if known is not None and known.launch_call_id is not None else True

    async def versions_of(self, group: ToolGroup) -> dict[str, str]:
        """The active one of each of its tools that is there."""
        probe = {group.verify.tool_id} if group.verify is not None else set[str]()
        found = await self._tools.list_some(sorted(group.all_tool_ids | probe))
        return {entry.manifest.tool_id: entry.manifest.version for entry in found}

    async def launches_of_others(self, step: SessionStep) -> tuple[JsonValue, ...]:
        """What the other living sessions of the group have launched."""
        if (probe := step.group.verify) is None:
            return ()
        living = await self._sessions.of_group(step.view.group_id, living=True, most=_MOST_OTHERS, all_of=True)
        return launched_by(probe, (view for view in living if view.session_id != step.view.session_id))

    async def note(self, step: SessionStep) -> None:
        await self._sessions.note(step.view, step.group)
        if step.alert:
            stop = step.group.step(GroupRole.STOP)
            event = Event(
                event_id=f"{step.view.session_id}:{step.view.state}:{step.view.stop_attempts}:{_mark(step.alert)}",
                event_type=EventType.SESSION_ALERT,
                tool_id=stop.tool_id if stop else "",
                at=now(),
                details={
                    "session_id": step.view.session_id,
                    "group_id": step.view.group_id,
                    "reason": shown_text(step.alert, LONGEST_ALERT),
                },
            )
            await self._events.warn(event)


def _mark(alert: str) -> str:
    """What is said again, as the same step, is told once; a launch that is looked for has other numbers each time."""
    return hashlib.sha256(alert.encode("utf-8", "surrogatepass")).hexdigest()[:16]
