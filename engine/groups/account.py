"""The account of a session: its row, and an event where the provider does not confirm a stop."""

from engine.store.clock import now
from engine.store.events import EventTable
from engine.store.sessions import SessionTable
from toolagent.contracts.groups import GroupRole
from toolagent.contracts.records import Event, EventType
from toolagent_service.contracts.sessions import OpenStep, SessionStep


class SessionAccounts:
    def __init__(self, sessions: SessionTable, events: EventTable) -> None:
        self._sessions, self._events = sessions, events

    async def open(self, step: OpenStep) -> bool:
        return await self._sessions.open(step.request, step.view, step.request.group.limits.max_sessions)

    async def note(self, step: SessionStep) -> None:
        await self._sessions.note(step.view)
        if step.alert:
            stop = step.group.step(GroupRole.STOP)
            event = Event(
                event_id=f"{step.view.session_id}:{step.view.state}:{step.view.stop_attempts}",
                event_type=EventType.SESSION_ALERT,
                tool_id=stop.tool_id if stop else "",
                at=now(),
                details={"session_id": step.view.session_id, "group_id": step.view.group_id, "reason": step.alert},
            )
            await self._events.say(event)
