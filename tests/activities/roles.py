"""The coding role as a model is told of it, without what its tools work with."""

from activities.agent_tools import CODING_TOOLS
from activities.agent_tools.site import Site
from activities.agents.role import AgentRole, PendingUse
from toolagent.contracts.agent import CODING
from toolagent.core import coding

__all__ = ["OFFERED"]


class _Offered(AgentRole[Site]):
    async def site(self, use: PendingUse) -> Site:
        raise AssertionError(f"Nobody uses {use.run.name}.")


OFFERED = _Offered(CODING, coding.CODING, CODING_TOOLS)
