"""A task whose host dies for good, and one that is cancelled in an awkward moment: on a real Temporal server with scripted steps."""

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
from toolagent.contracts.making import Finding, FindingKind, Inspection, MakeRequest, Stage
from toolagent.contracts.making_steps import (
    BuildOutcome,
    BuildStep,
    HostStep,
    Inspected,
    MakeEnd,
    Registered,
    RegisterStep,
    Slot,
    StageStep,
)
from toolagent.contracts.task_specs import BuildTool, GithubDeploy
from toolagent.contracts.tasks import TaskState
from workflows.coding_agent import CodingAgent
from workflows.create_tool import CreateTool

REPOSITORY = GithubDeploy(repo_url="https://example.com/notes.git", tool_name="notes")
WORDS = BuildTool(tool_name="reckoner", description="Reckon.")
APP = Finding(kind=FindingKind.ASGI, path="app.py", summary="an app", details={"module": "app", "attribute": "app", "project": ""})
AN_APP = Inspected(inspection=Inspection(findings=(APP,), files=2, code_files=1))
ONCE = [Stage.INSPECT, Stage.PLAN, Stage.BUILD, Stage.VERIFY, Stage.REGISTER, Stage.ANNOUNCE]

Handle = WorkflowHandle[object, MakeEnd]


@dataclass
class TwoHosts(MakingSteps):
    """`host` is asked for first. `goes_at` is the stage that it dies at; `other` is alive from then on, unless it is empty.

    `stubborn` names a step that ends as if nobody had cancelled it.
    """

    inspected: Inspected = AN_APP
    other: str = field(default_factory=lambda: f"host-{uuid.uuid4().hex[:8]}")
    goes_at: Stage | None = None
    stubborn: str = ""
    went: list[bool] = field(default_factory=list[bool])
    moves: list[bool] = field(default_factory=list[bool])

    @activity.defn(name=names.AWAIT_SLOT)
    async def await_slot(self, _request: MakeRequest) -> Slot:
        return Slot(host=self.host, patience_s=1)

    @activity.defn(name=names.FIND_HOST)
    async def find_host(self, step: HostStep) -> Slot:
        self.moves.append(step.moves)
        return Slot(host=self.other or step.host, patience_s=1)

    @activity.defn(name=names.ENTER_STAGE)
    async def enter_stage(self, step: StageStep) -> None:
        self.stages.append(step.stage)
        self.went.append(step.went_well)
        if step.stage is self.goes_at:
            self.reached.set()
            await self.released.wait()

    @activity.defn(name=names.BUILD_CANDIDATE)
    async def build(self, step: BuildStep) -> BuildOutcome:
        self.asked.append("build")
        await self._cancelled_in_vain("build")
        return await super().build(step)

    @activity.defn(name=names.REGISTER_CANDIDATE)
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
    """All but the hosts of the task."""
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
        task_queue=names.making_queue(name),
        activities=steps.all,
        max_heartbeat_throttle_interval=heartbeats,
        default_heartbeat_throttle_interval=heartbeats,
    )


async def begun(client: Client, queue: str, spec: GithubDeploy | BuildTool = REPOSITORY) -> Handle:
    task_id = f"create_{uuid.uuid4().hex[:8]}"
    given = MakeRequest(task_id=task_id, spec=spec).model_dump(mode="json")
    limit = timedelta(seconds=90)
    return await client.start_workflow(names.CREATE_TOOL, given, id=task_id, task_queue=queue, result_type=MakeEnd, execution_timeout=limit)


async def test_what_has_not_begun_to_be_written_begins_again_on_another_host(temporal: Client) -> None:
    steps = TwoHosts()
    async with working(temporal, steps) as queue, host(temporal, steps, steps.other):
        end = await (await begun(temporal, queue)).result()
    assert (end.status, steps.moves) == (TaskState.COMPLETED, [True])
    assert steps.stages == [Stage.INSPECT, *ONCE]
    assert steps.went == [True, False, *[True] * 4, True]
    assert steps.asked == ["build", "clear up", "end"]


async def test_what_was_built_is_judged_and_registered_where_somebody_is_alive(temporal: Client) -> None:
    steps = TwoHosts(goes_at=Stage.VERIFY)
    async with working(temporal, steps) as queue:
        async with host(temporal, steps, steps.host):
            handle = await begun(temporal, queue)
            await steps.reached.wait()
        steps.released.set()
        async with host(temporal, steps, steps.other):
            end = await handle.result()
    assert (end.status, steps.stages, steps.moves) == (TaskState.COMPLETED, ONCE, [True])
    assert steps.asked == ["build", "clear up", "end"]


async def test_an_agent_whose_host_is_lost_fails_and_says_what_to_do(temporal: Client) -> None:
    steps = TwoHosts(holds="use")
    async with working(temporal, steps) as queue:
        async with host(temporal, steps, steps.host):
            handle = await begun(temporal, queue, WORDS)
            await steps.reached.wait()
        async with host(temporal, steps, steps.other):
            end = await handle.result()
    assert end.status is TaskState.FAILED
    assert f"The host {steps.host!r}, which the task was on, went away" in end.reason
    assert "Ask for it again" in end.reason
    assert f"The host {steps.host!r} is away" in end.reason
    assert not any(steps.moves)
    assert steps.asked == ["end"]


async def test_a_host_that_comes_back_goes_on(temporal: Client) -> None:
    steps = TwoHosts(goes_at=Stage.BUILD, other="")
    async with working(temporal, steps) as queue:
        async with host(temporal, steps, steps.host):
            handle = await begun(temporal, queue)
            await steps.reached.wait()
        steps.released.set()
        while not steps.moves:  # noqa: ASYNC110 - whoever is asked has no event to wait for
            await asyncio.sleep(0.05)
        async with host(temporal, steps, steps.host):
            end = await handle.result()
    assert (end.status, steps.stages) == (TaskState.COMPLETED, ONCE)


async def test_a_task_on_a_lost_host_is_cancelled_all_the_same(temporal: Client) -> None:
    steps = TwoHosts(goes_at=Stage.BUILD)
    async with working(temporal, steps) as queue:
        async with host(temporal, steps, steps.host):
            handle = await begun(temporal, queue)
            await steps.reached.wait()
        for _ in range(2):
            await handle.cancel()
        steps.released.set()
        end = await handle.result()
    assert end.status is TaskState.CANCELLED
    assert f"The host {steps.host!r} is away: what is left of it there goes when that is started." in end.reason
    assert steps.asked == ["end"]


async def test_a_cancellation_that_a_step_overlooks_counts(temporal: Client) -> None:
    steps = TwoHosts(stubborn="build")
    async with working(temporal, steps) as queue, host(temporal, steps, steps.host):
        handle = await begun(temporal, queue)
        await steps.reached.wait()
        for _ in range(2):
            await handle.cancel()
        end = await handle.result()
    assert (end.status, steps.stages) == (TaskState.CANCELLED, ONCE[:3])
    assert steps.asked == ["build", "clear up", "end"]


async def test_what_is_being_registered_cannot_be_cancelled(temporal: Client) -> None:
    steps = TwoHosts(stubborn="register")
    async with working(temporal, steps) as queue, host(temporal, steps, steps.host):
        handle = await begun(temporal, queue)
        await steps.reached.wait()
        await handle.cancel()
        end = await handle.result()
    assert (end.status, end.tool_ids, steps.stages) == (TaskState.COMPLETED, ("reckoner",), ONCE)


async def test_a_task_that_waits_for_its_turn_is_cancelled_before_it_is_anywhere(temporal: Client) -> None:
    steps = TwoHosts()
    own = f"tests-{uuid.uuid4().hex[:8]}"
    handle = await begun(temporal, own)
    await handle.cancel()
    async with Worker(temporal, task_queue=own, workflows=[CreateTool], activities=steps.all):
        end = await handle.result()
    assert (end.status, steps.stages, steps.asked) == (TaskState.CANCELLED, [], ["end"])
