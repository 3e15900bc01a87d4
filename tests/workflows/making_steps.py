"""Scripted steps of a task that makes or repairs a tool: activities that keep the contract of the real ones."""

import asyncio
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.worker import Worker

from toolagent.client import names
from toolagent.contracts.making import Evidence, MakeRequest, Stage
from toolagent.core.task_requests import subject_of
from toolagent_service import step_names
from toolagent_service.agents.coding import CODING
from toolagent_service.contracts.agent import AgentLimits, AgentRequest, ModelAsk, ModelTurnNote, ToolNote, ToolRun, ToolUseNote
from toolagent_service.contracts.making_steps import (
    Assessed,
    BriefStep,
    BuildOutcome,
    BuildStep,
    Diagnosis,
    EndStep,
    HostStep,
    Inspected,
    Registered,
    RegisterStep,
    Slot,
    StageStep,
    TaskStep,
    VerifyStep,
)
from toolagent_service.contracts.model import Usage

__all__ = ["FOUND", "MOVED", "PATIENCE_S", "WAITING", "MakingSteps", "slots", "turn"]

FOUND = Diagnosis(version="1.2.0", content=f"file_{'0' * 32}", folder="reckoner")
WAITING = "waiting"
"""A tool whose task is never given leave to begin."""

MOVED = "moved"
"""A tool whose task is given to a host that has just died."""

PATIENCE_S = 1.0
"""With a host that has died."""


def turn(*uses: ToolUseNote, stop_reason: str = "tool_use", said: str = "") -> ModelTurnNote:
    usage = Usage(input_tokens=1_000, output_tokens=100)
    return ModelTurnNote(stop_reason=stop_reason, model="m", usage=usage, cost_usd=0.01, uses=uses, said=said)


def _final(ask: ModelAsk) -> ModelTurnNote:
    return turn(ToolUseNote(id=f"use-{ask.turn}", name=CODING.final_tool, summary="register", input_digest=str(ask.turn)))


@dataclass
class MakingSteps:
    """The findings, the built tool, the answers of the model by turn, the verdicts of the gate by round, and the registered tools; and the
    requests.

    An unscripted turn submits a candidate. `holds` names a step that waits until it is `released`, or cancelled.
    """

    host: str = field(default_factory=lambda: f"host-{uuid.uuid4().hex[:8]}")
    inspected: Inspected = field(default_factory=Inspected)
    found: Diagnosis = FOUND
    built: BuildOutcome = field(default_factory=lambda: BuildOutcome(candidate="candidate"))
    turns: Mapping[int, ModelTurnNote | ApplicationError] = field(default_factory=dict[int, ModelTurnNote | ApplicationError])
    faults: tuple[str, ...] = ("",)
    registered: Registered = field(default_factory=lambda: Registered(tool_ids=("reckoner",)))
    limits: AgentLimits = field(default_factory=lambda: AgentLimits(rounds=2))
    holds: str = ""
    asked: list[str] = field(default_factory=list[str])
    stages: list[Stage] = field(default_factory=list[Stage])
    verified: int = 0
    mended: list[str | None] = field(default_factory=list[str | None])
    remarks: list[str] = field(default_factory=list[str])
    ends: list[EndStep] = field(default_factory=list[EndStep])
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def all(self) -> list[Callable[..., object]]:
        notes: list[Callable[..., object]] = [self.await_slot, self.find_host, self.enter_stage, self.end_task, self.clear_up]
        work = [self.inspect, self.diagnose, self.build, self.lay_out, self.brief_agent, self.verify, self.register]
        return [*notes, *work, self.ask_model, self.use_tool]

    @activity.defn(name=step_names.AWAIT_SLOT)
    async def await_slot(self, _request: MakeRequest) -> Slot:
        return Slot(host=self.host)

    @activity.defn(name=step_names.FIND_HOST)
    async def find_host(self, step: HostStep) -> Slot:
        """The host that is named by the task is alive."""
        self.asked.append("find host")
        return Slot(host=step.task_id)

    @activity.defn(name=step_names.ENTER_STAGE)
    async def enter_stage(self, step: StageStep) -> None:
        self.stages.append(step.stage)

    @activity.defn(name=step_names.END_TASK)
    async def end_task(self, end: EndStep) -> None:
        self.asked.append("end")
        self.ends.append(end)

    @activity.defn(name=step_names.CLEAR_TASK)
    async def clear_up(self, _step: TaskStep) -> None:
        self.asked.append("clear up")

    @activity.defn(name=step_names.INSPECT_TASK)
    async def inspect(self, _step: TaskStep) -> Inspected:
        return self.inspected

    @activity.defn(name=step_names.DIAGNOSE)
    async def diagnose(self, _step: TaskStep) -> Diagnosis:
        await self._held("diagnose")
        return self.found

    @activity.defn(name=step_names.BUILD_CANDIDATE)
    async def build(self, _step: BuildStep) -> BuildOutcome:
        await self._held("build")
        return self.built

    @activity.defn(name=step_names.LAY_OUT)
    async def lay_out(self, _step: TaskStep) -> None:
        self.asked.append("lay out")

    @activity.defn(name=step_names.BRIEF_AGENT)
    async def brief_agent(self, step: BriefStep) -> AgentRequest:
        """Without a model, the first turn is refused here."""
        if isinstance(refusal := self.turns.get(0), ApplicationError):
            raise refusal
        assert step.diagnosis in (None, self.found)
        return AgentRequest(conversation_id=step.task_id, prompt="coding", limits=self.limits)

    @activity.defn(name=step_names.ASK_MODEL)
    async def ask_model(self, ask: ModelAsk) -> ModelTurnNote:
        self.remarks += ask.remarks
        await self._held("ask")
        match self.turns.get(ask.turn):
            case None:
                return _final(ask)
            case ApplicationError() as error:
                raise error
            case note:
                return note

    @activity.defn(name=step_names.USE_TOOL)
    async def use_tool(self, run: ToolRun) -> ToolNote:
        await self._held("use")
        if run.name == "read_file":
            raise ApplicationError("The disk is gone.", non_retryable=True, category=ApplicationErrorCategory.BENIGN)
        candidate = f"candidate-{run.tool_use_id}" if run.name == CODING.final_tool else None
        return ToolNote(tool_use_id=run.tool_use_id, name=run.name, summary=run.summary, digest=run.tool_use_id, product=candidate)

    @activity.defn(name=step_names.VERIFY_CANDIDATE)
    async def verify(self, step: VerifyStep) -> Assessed:
        self.mended.append(step.mends)
        self.verified += 1
        evidence = Evidence(task_id=step.task_id, at=datetime(2026, 11, 21, tzinfo=UTC), rounds=step.round)
        return Assessed(evidence=evidence, for_the_maker=self.faults[self.verified - 1])

    @activity.defn(name=step_names.REGISTER_CANDIDATE)
    async def register(self, step: RegisterStep) -> Registered:
        assert step.mends_content == (self.found.content if step.mends else None)
        self.mended.append(step.mends)
        return self.registered

    async def _held(self, step: str) -> None:
        if step != self.holds:
            return
        self.reached.set()
        while not self.released.is_set():
            activity.heartbeat()
            await asyncio.sleep(0.05)


@activity.defn(name=step_names.AWAIT_SLOT)
async def _by_task(request: MakeRequest) -> Slot:
    """A host for each task, whose player gets its steps."""
    match subject_of(request.spec):
        case tool_id if tool_id == WAITING:
            raise ApplicationError("Others are before it.", category=ApplicationErrorCategory.BENIGN)
        case tool_id if tool_id == MOVED:
            return Slot(host=f"{request.task_id}-dead", patience_s=PATIENCE_S)
        case _:
            return Slot(host=request.task_id)


@asynccontextmanager
async def slots(client: Client) -> AsyncGenerator[None]:
    """Lets all tasks begin."""
    async with Worker(client, task_queue=names.MAKING_QUEUE, activities=[_by_task]):
        yield
