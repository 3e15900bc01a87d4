"""Tasks that are cancelled or guided at critical moments: on a real Temporal server with scripted steps."""

import asyncio
import uuid
from dataclasses import dataclass
from datetime import timedelta

import pytest
from temporalio import activity
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from tests.workflows.agent_paths import EVENTS_OF_A_STEP, WRITE
from tests.workflows.making_stage import after_event
from tests.workflows.making_steps import turn
from tests.workflows.two_hosts import AN_APP, ONCE, REPOSITORY, WORDS, Handle, TwoHosts, begun, host, working
from toolagent.client import names
from toolagent.contracts.making import Guidance, MakeEnd, MakeRequest, Stage
from toolagent.contracts.tasks import TaskState
from toolagent_service import step_names
from toolagent_service.contracts.agent import AgentLimits, AgentRequest, ModelAsk, ModelTurnNote, ToolUseNote
from toolagent_service.contracts.making_steps import BriefStep, BuildOutcome, BuildStep, Registered, RegisterStep

BOUND_S = 60.0


@dataclass
class Deaf(TwoHosts):
    """`deaf` names a step without heartbeats, which does not notice a cancellation: it runs until it is `released`."""

    deaf: str = ""
    asks: int = 0

    @activity.defn(name=step_names.BUILD_CANDIDATE)
    async def build(self, step: BuildStep) -> BuildOutcome:
        await self._deaf("build")
        return await super().build(step)

    @activity.defn(name=step_names.BRIEF_AGENT)
    async def brief_agent(self, step: BriefStep) -> AgentRequest:
        await self._deaf("brief")
        return await super().brief_agent(step)

    @activity.defn(name=step_names.ASK_MODEL)
    async def ask_model(self, ask: ModelAsk) -> ModelTurnNote:
        self.asks += 1
        return await super().ask_model(ask)

    async def _deaf(self, step: str) -> None:
        if step == self.deaf:
            self.reached.set()
            await asyncio.wait_for(self.released.wait(), BOUND_S)


@dataclass
class Forgetful(TwoHosts):
    """Registers, and loses its first answer."""

    commits: int = 0

    @activity.defn(name=step_names.REGISTER_CANDIDATE)
    async def register(self, step: RegisterStep) -> Registered:
        self.commits += 1
        if self.commits == 1:
            raise ApplicationError("The connection broke.", category=ApplicationErrorCategory.BENIGN)
        return await super().register(step)


async def cancelled_at_work(handle: Handle) -> None:
    await handle.cancel()
    await after_event(handle, EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED)


@pytest.mark.parametrize("deaf", ["build", "brief"])
async def test_a_cancellation_that_a_step_cannot_hear_counts_when_it_has_ended(temporal: Client, deaf: str) -> None:
    steps = Deaf(deaf=deaf, inspected=AN_APP, built=BuildOutcome(reason="It does not start."))
    async with working(temporal, steps) as queue, host(temporal, steps, steps.host):
        handle = await begun(temporal, queue, REPOSITORY)
        await steps.reached.wait()
        await cancelled_at_work(handle)
        steps.released.set()
        end = await handle.result()
    assert (end.status, steps.stages) == (TaskState.CANCELLED, ONCE[:3])
    assert [asked for asked in steps.asked if asked != "build"] == [*(["lay out"] if deaf == "brief" else []), "clear up", "end"]
    assert not steps.asks


async def test_a_cancellation_while_the_agent_is_told_what_was_said_before_ends_that(temporal: Client) -> None:
    steps = Deaf(deaf="brief", holds="ask")
    async with asyncio.timeout(BOUND_S), working(temporal, steps) as queue, host(temporal, steps, steps.host):
        handle = await begun(temporal, queue, WORDS)
        await steps.reached.wait()
        for number in range(40):
            await handle.signal(names.GUIDE, Guidance(id=f"said-{number}", text="Faster."))
        steps.released.set()
        await after_event(handle, EventType.EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED)
        steps.released.clear()
        await handle.cancel()
        end = await handle.result()
        agent = await temporal.get_workflow_handle(names.coding_id(handle.id)).describe()
    assert (end.status, steps.stages) == (TaskState.CANCELLED, ONCE[:3])
    assert agent.close_time is not None
    assert steps.asked == ["clear up", "end"]


async def test_one_that_is_cancelled_when_nobody_knows_whether_it_is_registered_asks_again(temporal: Client) -> None:
    steps = Forgetful()
    async with working(temporal, steps) as queue, host(temporal, steps, steps.host):
        handle = await begun(temporal, queue)
        while not await _waits_for_another_attempt(handle):  # noqa: ASYNC110 - the server tells of no attempt
            await asyncio.sleep(0.02)
        await handle.cancel()
        end = await handle.result()
    assert (end.status, end.tool_ids, steps.commits, steps.stages) == (TaskState.COMPLETED, ("reckoner",), 2, ONCE)


async def _waits_for_another_attempt(handle: Handle) -> bool:
    pending = (await handle.describe()).raw_description.pending_activities
    return any(one.activity_type.name == step_names.REGISTER_CANDIDATE and one.attempt > 1 for one in pending)


async def test_what_an_agent_has_heard_is_not_told_again(temporal: Client) -> None:
    """Nor is a repeated message."""
    steps = TwoHosts(holds="ask", faults=("It does not start.", ""))
    async with working(temporal, steps) as queue, host(temporal, steps, steps.host):
        handle = await begun(temporal, queue, WORDS)
        await steps.reached.wait()
        for _ in range(2):
            await handle.signal(names.GUIDE, Guidance(id="said", text="Faster."))
        await after_event(handle, EventType.EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_SIGNALED)
        steps.released.set()
        end = await handle.result()
        kinds = [event.event_type for event in (await handle.fetch_history()).events]
    assert (end.status, steps.stages.count(Stage.BUILD)) == (TaskState.COMPLETED, 2)
    assert kinds.count(EventType.EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED) == 1
    assert "".join(steps.remarks).count("Faster.") == 1


@pytest.mark.parametrize("goes_on", [True, False])
async def test_an_agent_hears_and_is_cancelled_in_its_second_run_as_in_its_first(temporal: Client, *, goes_on: bool) -> None:
    steps = TwoHosts(holds="use", turns={1: turn(WRITE)}, limits=AgentLimits(events=EVENTS_OF_A_STEP))
    async with asyncio.timeout(BOUND_S), working(temporal, steps) as queue, host(temporal, steps, steps.host):
        handle = await begun(temporal, queue, WORDS)
        await steps.reached.wait()
        await handle.signal(names.GUIDE, Guidance(id="said", text="Faster."))
        await after_event(handle, EventType.EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_SIGNALED)
        if goes_on:
            steps.released.set()
        else:
            await handle.cancel()
        end = await handle.result()
        agent = await temporal.get_workflow_handle(names.coding_id(handle.id)).describe()
    assert (end.status, agent.close_time is None) == (TaskState.COMPLETED if goes_on else TaskState.CANCELLED, False)
    assert "".join(steps.remarks).count("Faster.") == goes_on
    assert steps.asked == ["clear up", "end"]


async def test_the_reason_of_what_breaks_in_an_agent_is_that_of_the_step(temporal: Client) -> None:
    steps = TwoHosts(turns={1: turn(ToolUseNote(id="use", name="read_file", summary="read", input_digest="1"))})
    async with working(temporal, steps) as queue, host(temporal, steps, steps.host):
        end = await (await begun(temporal, queue, WORDS)).result()
    assert (end.status, end.reason) == (TaskState.FAILED, "The disk is gone.")


@pytest.mark.parametrize("is_own", [True, False])
async def test_a_task_that_has_another_id_than_its_workflow_or_one_of_another_form_fails(temporal: Client, *, is_own: bool) -> None:
    steps = TwoHosts()
    own = f"create-{uuid.uuid4().hex[:8]}" if is_own else f"create_{uuid.uuid4().hex[:8]}"
    task_id = own if is_own else "create_0badcafe"
    given = MakeRequest(task_id=task_id, spec=WORDS).model_dump(mode="json")
    async with working(temporal, steps) as queue:
        with pytest.raises(WorkflowFailureError) as failure:
            await temporal.execute_workflow(
                names.CREATE_TOOL, given, id=own, task_queue=queue, result_type=MakeEnd, execution_timeout=timedelta(seconds=BOUND_S)
            )
    cause = failure.value.cause
    assert isinstance(cause, ApplicationError)
    assert (cause.non_retryable, cause.message.partition(":")[0], steps.asked) == (True, "task_id", [])


async def test_a_task_whose_agent_is_taken_by_somebody_else_fails_and_is_cleared_up(temporal: Client) -> None:
    steps = Deaf(deaf="brief")
    async with asyncio.timeout(BOUND_S), working(temporal, steps) as queue, host(temporal, steps, steps.host):
        handle = await begun(temporal, queue, WORDS)
        await steps.reached.wait()
        taken = await temporal.start_workflow(names.CODING_AGENT, id=names.coding_id(handle.id), task_queue="nobody")
        steps.released.set()
        end = await handle.result()
        await taken.terminate()
    assert (end.status, taken.id in end.reason, steps.asked) == (TaskState.FAILED, True, ["clear up", "end"])
