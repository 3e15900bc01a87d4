"""The role of a librarian."""

from activities.agents.role import AgentRole, PendingUse
from tests.activities.second_role.rules import RULES
from tests.activities.second_role.tools import LIBRARY_TOOLS, Shelves

__all__ = ["Librarian"]


class Librarian(AgentRole[Shelves]):
    def __init__(self) -> None:
        super().__init__("librarian", RULES, LIBRARY_TOOLS)

    async def site(self, use: PendingUse) -> Shelves:
        return {"Momo": "7b", "The key": use.key}
