"""Records the briefing of the coding agent before its first turn."""

from temporalio import activity

from activities.agents.opening import Openings
from activities.agents.role import AnyRole
from engine.making.briefing import briefing
from toolagent.contracts.task_specs import RepairTool
from toolagent_service import step_names
from toolagent_service.agents.model_cost import limits_for
from toolagent_service.contracts.agent import AgentLimits, AgentRequest
from toolagent_service.contracts.making_steps import BriefStep
from toolagent_service.making.task_reasons import why_a_model


class BriefAgent:
    """`allowed` are the largest limits of a task."""

    def __init__(self, openings: Openings, role: AnyRole, allowed: AgentLimits) -> None:
        self._openings, self._role, self._allowed = openings, role, allowed

    @activity.defn(name=step_names.BRIEF_AGENT)
    async def brief_agent(self, step: BriefStep) -> AgentRequest:
        """Idempotent."""
        limits = limits_for(step.spec.limits, self._allowed, self._openings.price(why_a_model(step.notes)))
        prompt = "repair" if isinstance(step.spec, RepairTool) else "coding"
        return await self._openings.open(step.task_id, briefing(step), self._role, prompt, limits)
