"""Records sessions: their rows, and an alert if the provider does not confirm a stop."""

import hashlib

from pydantic import JsonValue

from engine.groups.alerts import alert
from engine.store.events import EventTable
from engine.store.groups import GroupTable
from engine.store.sessions import SessionTable
from engine.store.tools import ToolTable
from toolagent.contracts.groups import GroupRole, ToolGroup
from toolagent.contracts.sessions import SessionView
from toolagent_service.contracts.sessions import OpenStep, SessionStep
from toolagent_service.groups.sessions import launched_by

_MOST_OTHERS = 1_000


class SessionAccounts:
    def __init__(self, groups: GroupTable, sessions: SessionTable, events: EventTable, tools: ToolTable) -> None:
        self._groups, self._sessions, self._events, self._tools = groups, sessions, events, tools

    async def group(self, group_id: str) -> ToolGroup | None:
        return await self._groups.get(group_id)

    async def open(self, step: OpenStep) -> bool | SessionView:
        """Whether the session may begin; or its state, if its row has a launch that its workflow does not know.

        Such a workflow was reset, or repeats its first task. The launch may never have been made. A session that has begun a launch may
        go on in any case: its row is missing if an older database was restored.
        """
        most = step.request.group.limits.max_sessions if step.view.launch_call_id is None else None
        if not await self._sessions.open(step.request, step.view, most):
            return False
        known = await self._sessions.get(step.view.session_id) if step.view.launch_call_id is None else None
        return known if known is not None and known.launch_call_id is not None else True

    async def versions_of(self, group: ToolGroup) -> dict[str, str]:
        """The active version of each existing tool of the group."""
        probe = {group.verify.tool_id} if group.verify is not None else set[str]()
        found = await self._tools.list_some(sorted(group.all_tool_ids | probe))
        return {entry.manifest.tool_id: entry.manifest.version for entry in found}

    async def launches_of_others(self, step: SessionStep) -> tuple[JsonValue, ...]:
        """The launches of the other living sessions of the group."""
        if (probe := step.group.verify) is None:
            return ()
        living = await self._sessions.of_group(step.view.group_id, living=True, most=_MOST_OTHERS, all_of=True)
        return launched_by(probe, (view for view in living if view.session_id != step.view.session_id))

    async def note(self, step: SessionStep) -> bool:
        """Records the state of the session. Returns whether it has a row."""
        has_row = await self._sessions.note(step.view, step.group)
        if step.alert:
            stop, view = step.group.step(GroupRole.STOP), step.view
            # The same step tells the same alert once. The search for a launch has other numbers each time.
            mark = hashlib.sha256(step.alert.encode("utf-8", "surrogatepass")).hexdigest()[:16]
            event_id = f"{view.session_id}:{view.state}:{view.stop_attempts}:{mark}"
            told = {"session_id": view.session_id, "group_id": view.group_id}
            await alert(self._events, event_id, stop.tool_id if stop else "", step.alert, **told)
        return has_row
