"""Writing down how far a session of a group is."""

from temporalio import activity

from engine.groups.account import SessionAccounts
from toolagent_service import step_names
from toolagent_service.contracts.sessions import OpenStep, SessionStep


class GroupSessions:
    def __init__(self, accounts: SessionAccounts) -> None:
        self._accounts = accounts

    @activity.defn(name=step_names.OPEN_SESSION)
    async def open_session(self, step: OpenStep) -> bool:
        """Whether it may begin: before anything is launched there is a row that says who has to stop it."""
        return await self._accounts.open(step)

    @activity.defn(name=step_names.NOTE_SESSION)
    async def note_session(self, step: SessionStep) -> None:
        await self._accounts.note(step)
