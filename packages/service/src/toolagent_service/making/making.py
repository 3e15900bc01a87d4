"""The rules of a task that makes or repairs a tool: the next step, and the state after it.

Pure: a workflow asks for the next step, runs it, and reports its outcome. The task says whether a tool is made or repaired.
"""

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from toolagent.contracts.making import Inspection, MakeRequest, Stage, Tried
from toolagent.contracts.task_specs import GithubDeploy, RepairTool
from toolagent.contracts.tasks import TaskState
from toolagent.core.task_requests import subject_of
from toolagent_service.agents.coding import another_round
from toolagent_service.contracts.agent import AgentEnd, AgentRequest, AgentResult
from toolagent_service.contracts.making_steps import (
    Assessed,
    BriefStep,
    BuildOutcome,
    BuildStep,
    Diagnosis,
    EndStep,
    Inspected,
    Registered,
    RegisterStep,
    TaskStep,
    VerifyStep,
)
from toolagent_service.contracts.plans import BuildPlan, CodingBuild, NothingToBuild
from toolagent_service.making.first_way import first_way
from toolagent_service.making.planning import Ways, only_code, ways
from toolagent_service.making.task_reasons import abridged, of_the_agent, ready_reason, why_a_model


@dataclass(frozen=True, slots=True)
class Enter:
    """Enter a stage. `went_well`: whether the stage before succeeded."""

    stage: Stage
    went_well: bool = True


Activity: TypeAlias = Literal[
    "inspect_task", "diagnose", "build_candidate", "lay_out", "brief_agent", "verify_candidate", "register_candidate"
]
Argument: TypeAlias = TaskStep | BuildStep | BriefStep | VerifyStep | RegisterStep
Answer: TypeAlias = Inspected | Diagnosis | BuildOutcome | AgentRequest | Assessed | Registered | None


@dataclass(frozen=True, slots=True)
class Act:
    """Run an activity on the host of the task, or `anywhere`, if it needs no files there.

    `is_certain`: it is retried even if the task is cancelled, because it may have succeeded although its answer was lost.
    """

    activity: Activity
    argument: Argument
    summary: str
    anywhere: bool = False
    is_certain: bool = False


@dataclass(frozen=True, slots=True)
class SeekAnswer:
    """Find out whether an existing tool fulfils the request."""

    found: Inspected


@dataclass(frozen=True, slots=True)
class ChooseWays:
    """Choose the ways to try, with `after_ways`."""


@dataclass(frozen=True, slots=True)
class RunAgent:
    asked: AgentRequest


@dataclass(frozen=True, slots=True)
class Announce:
    """Announce the callable tool. From here on, nothing can be cancelled."""


@dataclass(frozen=True, slots=True)
class Finish:
    end: EndStep


Step: TypeAlias = Enter | Act | SeekAnswer | ChooseWays | RunAgent | Announce | Finish


@dataclass(frozen=True, slots=True)
class MakingState:
    """The state of a task. None: not known yet."""

    request: MakeRequest
    otherwise: str = ""
    """The last sentence of the reason if the task fails."""
    stage: Stage | None = None
    is_moved: bool = False
    """Whether it moved to another host, where it begins again."""
    inspected: Inspected | None = None
    has_no_answer: bool = False
    """Whether no existing tool fulfils the request."""
    diagnosis: Diagnosis | None = None
    ways: Ways | None = None
    tried: tuple[Tried, ...] = ()
    """The ways without a model: first those that were tried, then those that are not possible."""
    failed_plans: int = 0
    notes: tuple[str, ...] = ()
    """Why it could not be built without a model."""
    is_laid_out: bool = False
    is_coded: bool = False
    """Whether the agent was asked to build it."""
    asked: AgentRequest | None = None
    agent: AgentResult | None = None
    """The result of the agent's last round."""
    candidate: str | None = None
    """The candidate at the gate."""
    assessed: Assessed | None = None
    registered: Registered | None = None
    end: EndStep | None = None

    @property
    def plan(self) -> BuildPlan | None:
        """The way that is tried now; None: the agent builds it."""
        plans = self.ways.plans if self.ways else ()
        return plans[self.failed_plans] if self.failed_plans < len(plans) else None


def begin(request: MakeRequest) -> MakingState:
    repaired = request.spec.tool_id if isinstance(request.spec, RepairTool) else ""
    return MakingState(request, otherwise=f"The tool {repaired!r} stays as it is." if repaired else "")


def moved(state: MakingState) -> MakingState:
    """The state after a move to another host, where the task begins again."""
    return MakingState(state.request, state.otherwise, is_moved=True, tried=state.tried, is_coded=state.is_coded)


def next_step(state: MakingState) -> Step:
    if state.end is not None:
        return Finish(state.end)
    if state.inspected is None and state.diagnosis is None:
        is_repair = isinstance(state.request.spec, RepairTool)
        first = Act("diagnose", _task(state), "diagnose") if is_repair else Act("inspect_task", _task(state), "inspect")
        return _in(state, Stage.INSPECT, first)
    if state.inspected is not None and not state.has_no_answer:
        return SeekAnswer(state.inspected)
    if state.stage is Stage.INSPECT:
        return _enter(state, Stage.PLAN)
    if state.ways is None:
        return ChooseWays()
    if state.candidate is not None:
        return _judging(state, state.candidate)
    if (plan := state.plan) is not None:
        step = BuildStep(task_id=state.request.task_id, spec=state.request.spec, plan=plan)
        return _in(state, Stage.BUILD, Act("build_candidate", step, f"build: {plan.way}"), went_well=state.failed_plans == 0)
    return _coding(state, state.ways)


def _judging(state: MakingState, candidate: str) -> Step:
    request, diagnosis, assessed = state.request, state.diagnosis or Diagnosis(), state.assessed
    if assessed is None:
        step = VerifyStep(
            task_id=request.task_id,
            spec=request.spec,
            candidate=candidate,
            round=state.agent.state.round if state.agent else 1,
            mends=diagnosis.version,
            commit=state.inspected.inspection.commit if state.inspected else "",
        )
        return _in(state, Stage.VERIFY, Act("verify_candidate", step, f"verify, round {step.round}", anywhere=True))
    if state.registered is not None:
        return Announce()
    register = RegisterStep(
        task_id=request.task_id,
        spec=request.spec,
        candidate=candidate,
        evidence=assessed.evidence,
        mends=diagnosis.version,
        mends_content=diagnosis.content,
    )
    return _in(state, Stage.REGISTER, Act("register_candidate", register, "register", anywhere=True, is_certain=True))


def _coding(state: MakingState, found: Ways) -> Step:
    request = state.request
    if isinstance(found.last, NothingToBuild):
        return Finish(_failed(state, "\n\n".join((*state.notes, found.last.reason))))
    if state.asked is not None:
        return _in(state, Stage.BUILD, RunAgent(state.asked), went_well=state.agent is None)
    if state.stage is not Stage.BUILD:
        return _enter(state, Stage.BUILD, went_well=not found.plans)
    if isinstance(request.spec, GithubDeploy) and not state.is_laid_out:
        return Act("lay_out", _task(state), "lay the repository out")
    inspection = state.inspected.inspection if state.inspected else Inspection()
    notes = (*state.notes, *(f"{one.found}: {one.reason}" for one in found.others if one.outcome == "not_possible"))
    if isinstance(request.spec, GithubDeploy) and not notes:
        notes = (only_code(inspection),)
    brief = BriefStep(
        task_id=request.task_id,
        spec=request.spec,
        inspection=inspection,
        notes=notes,
        diagnosis=state.diagnosis,
    )
    return Act("brief_agent", brief, "brief the agent")


def after_entered(state: MakingState, stage: Stage) -> MakingState:
    return replace(state, stage=stage, is_moved=False)


def after_act(state: MakingState, act: Act, answer: Answer) -> MakingState:
    """The state after an activity, by the type of its answer."""
    match answer:
        case Inspected():
            return replace(state, inspected=answer)
        case Diagnosis():
            return _after_diagnosed(state, answer)
        case BuildOutcome():
            return _after_built(state, answer)
        case AgentRequest():
            notes = act.argument.notes if isinstance(act.argument, BriefStep) else ()
            return replace(state, asked=answer, otherwise=state.otherwise or why_a_model(notes))
        case Assessed():
            return _after_assessed(state, answer)
        case Registered(refused=refused):
            return replace(state, end=_failed(state, refused)) if refused else replace(state, registered=answer)
        case None:
            return replace(state, is_laid_out=True)


def after_answer(state: MakingState, end: EndStep | None) -> MakingState:
    """The state after the search for an existing tool. `end`: that tool ends the task."""
    refused = state.inspected.refused if state.inspected else ""
    return replace(state, has_no_answer=True, end=end or (_failed(state, refused) if refused else None))


def _after_diagnosed(state: MakingState, found: Diagnosis) -> MakingState:
    if found.refused:
        return replace(state, diagnosis=found, otherwise="", end=_failed(state, found.refused))
    # By the end, another version may be active.
    subject = subject_of(state.request.spec)
    otherwise = f"The tool {subject!r} stays as it is; what was to be mended is its version {found.version}."
    return replace(state, diagnosis=found, otherwise=otherwise, ways=Ways((), (), CodingBuild()))


def after_ways(state: MakingState, *, is_every_way_tried: bool) -> MakingState:
    """The state with the ways to try. Tasks from older versions try only one way."""
    spec, inspected = state.request.spec, state.inspected or Inspected()
    found = ways(spec, inspected.inspection if isinstance(spec, GithubDeploy) else None)
    if not is_every_way_tried:
        found = first_way(spec, found, inspected.inspection)
    return replace(state, ways=found, tried=found.others)


def _after_built(state: MakingState, outcome: BuildOutcome) -> MakingState:
    if outcome.candidate is not None:
        return replace(state, candidate=outcome.candidate)
    return _with_failed_plan(state, outcome.why)


def begun(state: MakingState, act: Act) -> MakingState:
    """The state before the activity, which may fail."""
    return replace(state, is_coded=True) if act.activity == "brief_agent" else state


def after_agent(state: MakingState, result: AgentResult) -> MakingState:
    if result.end is not AgentEnd.DONE or result.product is None:
        return replace(state, agent=result, end=_failed(state, result.reason))
    return replace(state, agent=result, candidate=result.product)


def _after_assessed(state: MakingState, assessed: Assessed) -> MakingState:
    """Continues with what passed, with the next way, or with another round."""
    told, plan = assessed.for_the_maker, state.plan
    if not told:
        passed = replace(state, assessed=assessed)
        return (
            passed if plan is None else replace(passed, candidate=assessed.candidate or state.candidate, tried=_came(state, plan, "passed"))
        )
    if plan is not None:
        reason = f"What was built did not pass the gate.\n\n{told}"
        if state.ways is not None and not state.ways.goes_on:
            return replace(state, end=_failed(state, reason))
        return _with_failed_plan(replace(state, candidate=None), reason)
    if state.asked is None or state.agent is None:
        raise ValueError("What is judged was made by a way or by the agent.")
    again = another_round(state.asked, state.agent.state, told)
    if again is None:
        reason = f"What was built did not pass the gate in {state.agent.state.round} rounds.\n\n{told}"
        return replace(state, end=_failed(state, reason))
    return replace(state, asked=state.asked.model_copy(update={"resume_from": again}), candidate=None)


def after_announced(state: MakingState) -> MakingState:
    if state.registered is None or state.assessed is None:
        raise ValueError("What is announced can be called.")
    evidence, tool_ids = state.assessed.evidence, state.registered.tool_ids
    reason = ready_reason(tool_ids, evidence.left_out)
    if state.diagnosis is not None:
        reason = f"{subject_of(state.request.spec)!r} is mended. Version {state.diagnosis.version} stays, for a rollback."
    end = EndStep(request=state.request, status=TaskState.COMPLETED, reason=reason, tool_ids=tool_ids, evidence=evidence)
    return replace(state, stage=Stage.ANNOUNCE, end=end)


def ended(state: MakingState, end: EndStep) -> EndStep:
    """The end with its full reason, and with all tried ways, including the agent."""
    is_made = end.status is TaskState.COMPLETED
    reason = end.reason if is_made or not state.otherwise else f"{end.reason}\n\n{state.otherwise}"
    tried = state.tried
    if state.is_coded and isinstance(end.request.spec, GithubDeploy):
        why = "" if is_made else of_the_agent(reason)
        tried = (*tried, Tried(way="coding", found="coding agent", outcome="passed" if is_made else "failed", reason=why))
    return end.model_copy(update={"reason": reason, "tried": tried})


def _task(state: MakingState) -> TaskStep:
    return TaskStep(task_id=state.request.task_id, spec=state.request.spec)


def _in(state: MakingState, stage: Stage, step: Step, *, went_well: bool = True) -> Step:
    """The step, or first the entry into its stage."""
    return step if state.stage is stage else _enter(state, stage, went_well=went_well)


def _enter(state: MakingState, stage: Stage, *, went_well: bool = True) -> Enter:
    return Enter(stage, went_well and not state.is_moved)


def _failed(state: MakingState, reason: str) -> EndStep:
    return EndStep(request=state.request, status=TaskState.FAILED, reason=reason)


def _with_failed_plan(state: MakingState, reason: str) -> MakingState:
    tried = _came(state, state.plan, "failed", reason) if state.plan else state.tried
    return replace(state, tried=tried, notes=(*state.notes, reason), failed_plans=state.failed_plans + 1)


def _came(state: MakingState, plan: BuildPlan, outcome: Literal["passed", "failed"], reason: str = "") -> tuple[Tried, ...]:
    """The tried ways with the outcome of this one, before those that are not possible."""
    so_far = [one for one in state.tried if one.outcome in ("passed", "failed")]
    one = Tried(way=plan.way, found=plan.found, outcome=outcome, reason=abridged(reason))
    return (*so_far, one, *state.tried[len(so_far) :])
