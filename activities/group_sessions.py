"""Records the sessions of groups."""

from pydantic import JsonValue
from temporalio import activity

from engine.groups.account import SessionAccounts
from toolagent.contracts.groups import ToolGroup
from toolagent.contracts.sessions import SessionView
from toolagent_service import step_names
from toolagent_service.contracts.sessions import OpenStep, SessionStep


class GroupSessions:
    def __init__(self, accounts: SessionAccounts) -> None:
        self._accounts = accounts

    @activity.defn(name=step_names.OPEN_SESSION)
    async def open_session(self, step: OpenStep) -> bool | SessionView:
        """Whether the session may begin, or its state. Its row exists before anything is launched, so the launch can be stopped."""
        return await self._accounts.open(step)

    @activity.defn(name=step_names.NOTE_SESSION)
    async def note_session(self, step: SessionStep) -> bool | None:
        return await self._accounts.note(step)

    @activity.defn(name=step_names.FIND_GROUP)
    async def find_group(self, group_id: str) -> ToolGroup | None:
        return await self._accounts.group(group_id)

    @activity.defn(name=step_names.LIST_LAUNCHES)
    async def list_launches(self, step: SessionStep) -> tuple[JsonValue, ...]:
        return await self._accounts.launches_of_others(step)

    @activity.defn(name=step_names.PIN_VERSIONS)
    async def pin_versions(self, group: ToolGroup) -> dict[str, str]:
        return await self._accounts.versions_of(group)
