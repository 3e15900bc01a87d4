"""The role that writes tools: it works at the bench of its task, and puts a candidate down."""

from pydantic import JsonValue

from activities.agent_tools import CODING_TOOLS
from activities.agent_tools.site import Site
from activities.agents.role import AgentRole, PendingUse
from activities.agents.tool import AgentToolRefused, AgentToolUnavailable, Used
from engine.making.workbench.bench import Workbenches
from engine.making.workbench.proposals import Judge, Proposals
from engine.making.workbench.refusal import BenchRefused
from engine.runtimes.environments.failures import ScriptErrorKind, ScriptFailure
from engine.runtimes.failures import StartFailed
from engine.store.tasks import TaskTable
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.task_specs import RepairTool
from toolagent.core.failures import UnknownTaskError
from toolagent_service.agents import coding
from toolagent_service.contracts.agent import CODING

_REPAIR = RepairTool.model_fields["type"].default


class CodingRole(AgentRole[Site]):
    """Its conversations are named as their tasks."""

    def __init__(self, benches: Workbenches, gate: Judge, proposals: Proposals, tasks: TaskTable) -> None:
        super().__init__(CODING, coding.CODING, CODING_TOOLS)
        self._benches, self._gate, self._proposals, self._tasks = benches, gate, proposals, tasks

    async def site(self, use: PendingUse) -> Site:
        task_id = use.run.conversation_id
        task = await self._tasks.listed(task_id)
        if task is None:
            raise UnknownTaskError(task_id)
        # Looked up where it counts: with its examples a specification may be large.
        whole = await self._tasks.get(task_id) if use.run.name == self.rules.final_tool else None
        return Site(
            task_id=task_id,
            own_tool=task.tool_id,
            is_repair=task.type == _REPAIR,
            runtime=None if whole is None or isinstance(whole.spec, RepairTool) else whole.spec.runtime,
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
        except StartFailed as failure:
            raise _told(failure.message, is_ours=failure.error_type is ErrorType.UNAVAILABLE) from failure
        except ScriptFailure as failure:
            raise _told(failure.message, is_ours=failure.kind is ScriptErrorKind.UNAVAILABLE) from failure


def _told(message: str, *, is_ours: bool) -> AgentToolRefused | AgentToolUnavailable:
    return AgentToolUnavailable(message) if is_ours else AgentToolRefused(message)
