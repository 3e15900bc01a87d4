"""A repair as a workflow, on a real Temporal server with scripted steps."""

import uuid
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta

from temporalio import activity
from temporalio.client import Client
from temporalio.worker import Worker

from toolagent.client import names
from toolagent.contracts.agent import AgentLimits, AgentRequest, ModelAsk, ModelTurnNote, ToolNote, ToolRun, ToolUseNote
from toolagent.contracts.making import Evidence, MakeRequest, Stage
from toolagent.contracts.making_steps import (
    Assessed,
    BriefStep,
    Diagnosis,
    EndStep,
    MakeEnd,
    Registered,
    RegisterStep,
    Slot,
    StageStep,
    TaskStep,
    VerifyStep,
)
from toolagent.contracts.model import Usage
from toolagent.contracts.task_specs import RepairTool as RepairSpec
from toolagent.contracts.tasks import TaskState
from toolagent.core.loop import FINAL_TOOL
from workflows.coding_agent import CodingAgent
from workflows.repair_tool import RepairTool

FOUND = Diagnosis(version="1.2.0", folder="reckoner")
EVIDENCE = Evidence(task_id="repair_00000001", at=datetime(2026, 11, 21, tzinfo=UTC))
BROKEN = "recorded calls: 1 of 2 calls were answered as before."


class Steps:
    """What is found, what the gate says in each round, and how it is registered; and what was asked of them."""

    def __init__(self, found: Diagnosis = FOUND, faults: tuple[str, ...] = ("",), registered: Registered | None = None) -> None:
        self.found, self.faults, self.registered = found, faults, registered or Registered(tool_ids=("reckoner",))
        self.host = f"host-{uuid.uuid4().hex[:8]}"
        self.asked: list[str] = []
        self.stages: list[Stage] = []
        self.mended: list[str] = []
        self.remarks: list[str] = []
        self.ends: list[EndStep] = []

    @property
    def all(self) -> list[Callable[..., object]]:
        notes: list[Callable[..., object]] = [self.await_slot, self.enter_stage, self.end_task, self.diagnose, self.brief_agent]
        return [*notes, self.ask_model, self.use_tool, self.verify, self.register, self.clear_up]

    @activity.defn(name=names.AWAIT_SLOT)
    async def await_slot(self, _request: MakeRequest) -> Slot:
        return Slot(host=self.host)

    @activity.defn(name=names.ENTER_STAGE)
    async def enter_stage(self, step: StageStep) -> None:
        self.stages.append(step.stage)

    @activity.defn(name=names.END_TASK)
    async def end_task(self, end: EndStep) -> None:
        self.asked.append("end")
        self.ends.append(end)

    @activity.defn(name=names.DIAGNOSE)
    async def diagnose(self, _step: TaskStep) -> Diagnosis:
        return self.found

    @activity.defn(name=names.BRIEF_AGENT)
    async def brief_agent(self, step: BriefStep) -> AgentRequest:
        assert step.diagnosis == self.found
        return AgentRequest(task_id=step.task_id, prompt="repair", limits=AgentLimits(rounds=2))

    @activity.defn(name=names.ASK_MODEL)
    async def ask_model(self, ask: ModelAsk) -> ModelTurnNote:
        self.remarks += ask.remarks
        use = ToolUseNote(id=f"use-{ask.turn}", name=FINAL_TOOL, summary="register", input_digest=str(ask.turn))
        return ModelTurnNote(stop_reason="tool_use", model="m", usage=Usage(), uses=(use,))

    @activity.defn(name=names.USE_TOOL)
    async def use_tool(self, run: ToolRun) -> ToolNote:
        return ToolNote(tool_use_id=run.tool_use_id, name=run.name, candidate=f"candidate-{run.tool_use_id}")

    @activity.defn(name=names.VERIFY_CANDIDATE)
    async def verify(self, step: VerifyStep) -> Assessed:
        self.mended.append(step.mends)
        return Assessed(evidence=EVIDENCE, for_the_maker=self.faults[step.round - 1])

    @activity.defn(name=names.REGISTER_CANDIDATE)
    async def register(self, step: RegisterStep) -> Registered:
        self.mended.append(step.mends)
        return self.registered

    @activity.defn(name=names.CLEAR_TASK)
    async def clear_up(self, _step: TaskStep) -> None:
        self.asked.append("clear up")


@asynccontextmanager
async def working(client: Client, steps: Steps) -> AsyncGenerator[str]:
    own = f"tests-{uuid.uuid4().hex[:8]}"
    async with AsyncExitStack() as stack:
        for queue in (own, names.MAKING_QUEUE, names.making_queue(steps.host)):
            workflows = [RepairTool, CodingAgent] if queue == own else []
            await stack.enter_async_context(Worker(client, task_queue=queue, workflows=workflows, activities=steps.all))
        yield own


async def repaired(client: Client, steps: Steps) -> MakeEnd:
    task_id = f"repair_{uuid.uuid4().hex[:8]}"
    request = MakeRequest(task_id=task_id, spec=RepairSpec(tool_id="reckoner", error="HTTP 500"))
    async with working(client, steps) as queue:
        given = request.model_dump(mode="json")
        handle = await client.start_workflow(
            names.REPAIR_TOOL, given, id=task_id, task_queue=queue, result_type=MakeEnd, execution_timeout=timedelta(seconds=60)
        )
        return await handle.result()


async def test_a_repair_that_breaks_a_call_goes_back_to_the_agent_and_then_takes_over(temporal: Client) -> None:
    steps = Steps(faults=(BROKEN, ""))
    end = await repaired(temporal, steps)
    assert (end.status, end.tool_ids) == (TaskState.COMPLETED, ("reckoner",))
    assert "Version 1.2.0 stays" in end.reason
    assert BROKEN in "".join(steps.remarks)
    assert steps.mended == ["1.2.0"] * 3
    assert steps.stages == [
        Stage.INSPECT,
        Stage.PLAN,
        Stage.BUILD,
        Stage.VERIFY,
        Stage.BUILD,
        Stage.VERIFY,
        Stage.REGISTER,
        Stage.ANNOUNCE,
    ]
    assert steps.asked == ["clear up", "end"]


async def test_one_that_breaks_it_to_the_end_is_refused_and_the_old_version_stays(temporal: Client) -> None:
    end = await repaired(temporal, steps := Steps(faults=(BROKEN, BROKEN)))
    assert end.status is TaskState.FAILED
    assert BROKEN in end.reason
    assert end.reason.endswith("The tool 'reckoner' stays as it is, at version 1.2.0.")
    assert Stage.REGISTER not in steps.stages
    assert [one.reason for one in steps.ends] == [end.reason]


async def test_one_that_may_not_take_over_fails_with_the_reason(temporal: Client) -> None:
    end = await repaired(temporal, Steps(registered=Registered(refused="Meanwhile there is 1.3.0.")))
    assert end.status is TaskState.FAILED
    assert end.reason.startswith("Meanwhile there is 1.3.0.")


async def test_what_cannot_be_mended_ends_before_an_agent_is_asked(temporal: Client) -> None:
    end = await repaired(temporal, steps := Steps(found=Diagnosis(refused="It is a service somewhere else.")))
    assert (end.status, end.reason) == (TaskState.FAILED, "It is a service somewhere else.")
    assert (steps.stages, steps.remarks, steps.asked) == ([Stage.INSPECT], [], ["clear up", "end"])
