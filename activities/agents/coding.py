"""The role that writes tools: it works at the bench of its task, and submits a candidate."""

from pydantic import JsonValue

from activities.agent_tool import AgentToolRefused, AgentToolUnavailable, Used
from activities.agent_tools import CODING_TOOLS
from activities.agent_tools.site import Site
from activities.agents.role import AgentRole, PendingUse
from engine.making.workbench.bench import Workbenches
from engine.making.workbench.proposal import Judge
from engine.making.workbench.proposals import Proposals
from engine.making.workbench.refusal import BenchRefused
from engine.runtimes.environments.failures import ScriptErrorKind, ScriptFailure
from engine.runtimes.failures import StartFailed
from engine.tasks.subjects import Subjects
from toolagent.contracts.calls import ErrorType
from toolagent_service.agents import coding
from toolagent_service.contracts.agent import CODING


class CodingRole(AgentRole[Site]):
    """A conversation has the id of its task."""

    def __init__(self, benches: Workbenches, gate: Judge, proposals: Proposals, subjects: Subjects) -> None:
        super().__init__(CODING, coding.CODING, CODING_TOOLS)
        self._benches, self._gate, self._proposals, self._subjects = benches, gate, proposals, subjects

    async def site(self, use: PendingUse) -> Site:
        task_id = use.run.conversation_id
        subject = await self._subjects.of(task_id)
        return Site(
            task_id=task_id,
            own_tool=subject.tool_id,
            is_repair=subject.is_repair,
            runtime=await self._subjects.runtime(task_id) if use.run.name == self.rules.final_tool else None,
            use=use.key,
            remaining_s=use.remaining_s,
            bench=await self._benches.of(task_id),
            gate=self._gate,
            proposals=self._proposals,
            beat=use.say,
        )

    async def use(self, given: dict[str, JsonValue], use: PendingUse) -> Used:
        try:
            return await super().use(given, use)
        except BenchRefused as refused:
            raise AgentToolRefused(str(refused)) from refused
        except (StartFailed, ScriptFailure) as failure:
            kind = failure.error_type if isinstance(failure, StartFailed) else failure.kind
            is_outage = kind in {ErrorType.UNAVAILABLE, ScriptErrorKind.UNAVAILABLE}
            raise (AgentToolUnavailable if is_outage else AgentToolRefused)(failure.message) from failure
