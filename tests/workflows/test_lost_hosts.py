"""A task whose host dies for good, and one that is cancelled at a critical moment: on a real Temporal server with scripted steps."""

import asyncio
import uuid

import pytest
from temporalio.client import Client
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.worker import Worker

from tests.workflows.two_hosts import ONCE, REPOSITORY, WORDS, TwoHosts, begun, host, working
from toolagent.client import names
from toolagent.contracts.making import Stage
from toolagent.contracts.task_specs import BuildTool, GithubDeploy
from toolagent.contracts.tasks import TaskState
from toolagent_service import step_names
from toolagent_service.contracts.making_steps import Registered
from workflows.making.create_tool import CreateTool


async def test_what_has_not_begun_to_be_written_begins_again_on_another_host(temporal: Client) -> None:
    steps = TwoHosts(patience_s=1)
    async with working(temporal, steps) as queue, host(temporal, steps, steps.other):
        end = await (await begun(temporal, queue)).result()
    assert (end.status, steps.moves) == (TaskState.COMPLETED, [True])
    assert steps.stages == [Stage.INSPECT, *ONCE]
    assert steps.went == [True, False, *[True] * 4, True]
    assert steps.asked == ["build", "clear up", "end"]


async def test_what_was_built_is_judged_and_registered_where_somebody_is_alive(temporal: Client) -> None:
    steps = TwoHosts(goes_at=Stage.VERIFY, patience_s=2)
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
    steps = TwoHosts(holds="use", patience_s=2)
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
    steps = TwoHosts(goes_at=Stage.BUILD, other="", patience_s=2)
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
    steps = TwoHosts(goes_at=Stage.BUILD, patience_s=2)
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


@pytest.mark.parametrize(("step", "spec"), [("verify", REPOSITORY), ("register", REPOSITORY), ("ask", WORDS)])
async def test_a_task_whose_step_fails_when_it_is_cancelled_is_cancelled(
    temporal: Client, step: str, spec: GithubDeploy | BuildTool
) -> None:
    broken = ApplicationError(
        "The model says no.", type=step_names.MODEL_REFUSED, non_retryable=True, category=ApplicationErrorCategory.BENIGN
    )
    faults = ("It does not start.",) if step == "verify" else ("",)
    steps = TwoHosts(stubborn=step, turns={1: broken}, faults=faults, registered=Registered(refused="There is one of that id by now."))
    async with working(temporal, steps) as queue, host(temporal, steps, steps.host):
        handle = await begun(temporal, queue, spec)
        await steps.reached.wait()
        await handle.cancel()
        end = await handle.result()
    assert (end.status, end.reason) == (TaskState.CANCELLED, "It was cancelled.")
    assert steps.asked[-2:] == ["clear up", "end"]


async def test_a_model_that_fails_when_its_agent_is_cancelled_cancels_that(temporal: Client) -> None:
    """Only the agent is cancelled, and nothing else knows of it."""
    broken = ApplicationError(
        "The model says no.", type=step_names.MODEL_REFUSED, non_retryable=True, category=ApplicationErrorCategory.BENIGN
    )
    steps = TwoHosts(stubborn="ask", turns={1: broken})
    async with working(temporal, steps) as queue, host(temporal, steps, steps.host):
        handle = await begun(temporal, queue, WORDS)
        await steps.reached.wait()
        await temporal.get_workflow_handle(names.coding_id(handle.id)).cancel()
        end = await handle.result()
    assert (end.status, end.reason) == (TaskState.CANCELLED, "It was cancelled.")


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
