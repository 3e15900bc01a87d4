"""The coding role as a model sees it, without the parts that its tools need."""

from activities.agent_tools import CODING_TOOLS
from activities.agent_tools.site import Site
from activities.agents.role import AgentRole, PendingUse
from toolagent_service.agents import coding
from toolagent_service.contracts.agent import CODING

__all__ = ["OFFERED"]


class _Offered(AgentRole[Site]):
    async def site(self, use: PendingUse) -> Site:
        raise AssertionError(f"Nobody uses {use.run.name}.")


OFFERED = _Offered(CODING, coding.CODING, CODING_TOOLS)
