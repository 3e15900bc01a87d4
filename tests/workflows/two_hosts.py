"""A task whose host may die, played with scripted steps; its hosts come and go."""

import asyncio
import uuid
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from temporalio import activity
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Worker

from tests.workflows.making_steps import MakingSteps
from toolagent.client import names
from toolagent.contracts.making import Finding, FindingKind, Inspection, MakeEnd, MakeRequest, Stage
from toolagent.contracts.task_specs import BuildTool, GithubDeploy
from toolagent_service import step_names
from toolagent_service.contracts.agent import ModelAsk, ModelTurnNote
from toolagent_service.contracts.making_steps import (
    Assessed,
    BuildOutcome,
    BuildStep,
    HostStep,
    Inspected,
    Registered,
    RegisterStep,
    Slot,
    StageStep,
    VerifyStep,
)
from workflows.making.coding_agent import CodingAgent
from workflows.making.create_tool import CreateTool

__all__ = ["AN_APP", "ONCE", "REPOSITORY", "WORDS", "Handle", "TwoHosts", "begun", "host", "working"]

REPOSITORY = GithubDeploy(repo_url="https://example.com/notes.git", tool_name="notes")
WORDS = BuildTool(tool_name="reckoner", description="Reckon.")
APP = Finding(kind=FindingKind.ASGI, path="app.py", summary="an app", details={"module": "app", "attribute": "app", "project": ""})
AN_APP = Inspected(inspection=Inspection(findings=(APP,), files=2, code_files=1))
ONCE = [Stage.INSPECT, Stage.PLAN, Stage.BUILD, Stage.VERIFY, Stage.REGISTER, Stage.ANNOUNCE]

Handle = WorkflowHandle[object, MakeEnd]


@dataclass
class TwoHosts(MakingSteps):
    """`host` is asked first. `goes_at` is the stage at which it dies; `other` is alive from then on, unless it is empty.

    `stubborn` names a step that ignores a cancellation. `patience_s` is short if a host is to be missed; a busy living one is not taken for
    dead.
    """

    inspected: Inspected = AN_APP
    other: str = field(default_factory=lambda: f"host-{uuid.uuid4().hex[:8]}")
    goes_at: Stage | None = None
    stubborn: str = ""
    patience_s: float = 60.0
    went: list[bool] = field(default_factory=list[bool])
    moves: list[bool] = field(default_factory=list[bool])

    @activity.defn(name=step_names.AWAIT_SLOT)
    async def await_slot(self, _request: MakeRequest) -> Slot:
        return Slot(host=self.host, patience_s=self.patience_s)

    @activity.defn(name=step_names.FIND_HOST)
    async def find_host(self, step: HostStep) -> Slot:
        self.moves.append(step.moves)
        return Slot(host=self.other or step.host, patience_s=self.patience_s)

    @activity.defn(name=step_names.ENTER_STAGE)
    async def enter_stage(self, step: StageStep) -> None:
        self.stages.append(step.stage)
        self.went.append(step.went_well)
        if step.stage is self.goes_at:
            self.reached.set()
            await self.released.wait()

    @activity.defn(name=step_names.BUILD_CANDIDATE)
    async def build(self, step: BuildStep) -> BuildOutcome:
        self.asked.append("build")
        await self._cancelled_in_vain("build")
        return await super().build(step)

    @activity.defn(name=step_names.ASK_MODEL)
    async def ask_model(self, ask: ModelAsk) -> ModelTurnNote:
        await self._cancelled_in_vain("ask")
        return await super().ask_model(ask)

    @activity.defn(name=step_names.VERIFY_CANDIDATE)
    async def verify(self, step: VerifyStep) -> Assessed:
        await self._cancelled_in_vain("verify")
        return await super().verify(step)

    @activity.defn(name=step_names.REGISTER_CANDIDATE)
    async def register(self, step: RegisterStep) -> Registered:
        await self._cancelled_in_vain("register")
        return await super().register(step)

    async def _cancelled_in_vain(self, step: str) -> None:
        if step == self.stubborn:
            self.reached.set()
            try:
                while True:
                    activity.heartbeat()
                    await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                return


@asynccontextmanager
async def working(client: Client, steps: TwoHosts) -> AsyncGenerator[str]:
    """All workers except the hosts of the task."""
    own = f"tests-{uuid.uuid4().hex[:8]}"
    async with AsyncExitStack() as stack:
        for queue in (own, names.MAKING_QUEUE):
            workflows = [CreateTool, CodingAgent] if queue == own else []
            await stack.enter_async_context(Worker(client, task_queue=queue, workflows=workflows, activities=steps.all))
        yield own


def host(client: Client, steps: TwoHosts, name: str) -> Worker:
    heartbeats = timedelta(seconds=0.1)  # a cancellation comes with the answer to one
    return Worker(
        client,
        task_queue=step_names.making_queue(name),
        activities=steps.all,
        max_heartbeat_throttle_interval=heartbeats,
        default_heartbeat_throttle_interval=heartbeats,
    )


async def begun(client: Client, queue: str, spec: GithubDeploy | BuildTool = REPOSITORY) -> Handle:
    task_id = f"create_{uuid.uuid4().hex[:8]}"
    given = MakeRequest(task_id=task_id, spec=spec).model_dump(mode="json")
    limit = timedelta(seconds=90)
    return await client.start_workflow(names.CREATE_TOOL, given, id=task_id, task_queue=queue, result_type=MakeEnd, execution_timeout=limit)
