"""A repair as a workflow, on a real Temporal server with scripted steps."""

import asyncio
import uuid
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta

import pytest
from temporalio.client import Client
from temporalio.worker import Worker

from tests.workflows.making_steps import MakingSteps
from toolagent.client import names
from toolagent.contracts.making import MakeEnd, MakeRequest, Stage
from toolagent.contracts.task_specs import RepairTool as RepairSpec
from toolagent.contracts.tasks import TaskState
from toolagent_service import step_names
from toolagent_service.contracts.making_steps import Diagnosis, Registered
from workflows.making.coding_agent import CodingAgent
from workflows.making.repair_tool import RepairTool

_PATIENCE_S = 60.0
BROKEN = "recorded calls: 1 of 2 calls were answered as before."


@asynccontextmanager
async def working(client: Client, steps: MakingSteps) -> AsyncGenerator[str]:
    own = f"tests-{uuid.uuid4().hex[:8]}"
    async with AsyncExitStack() as stack:
        for queue in (own, names.MAKING_QUEUE, step_names.making_queue(steps.host)):
            workflows = [RepairTool, CodingAgent] if queue == own else []
            worker = Worker(
                client,
                task_queue=queue,
                workflows=workflows,
                activities=steps.all,
                # With a heartbeat it is heard that a step is to be cancelled.
                max_heartbeat_throttle_interval=timedelta(seconds=0.1),
            )
            await stack.enter_async_context(worker)
        yield own


async def repaired(client: Client, steps: MakingSteps) -> MakeEnd:
    """A repair that is cancelled where a step waits."""
    task_id = f"repair_{uuid.uuid4().hex[:8]}"
    request = MakeRequest(task_id=task_id, spec=RepairSpec(tool_id="reckoner", error="HTTP 500"))
    async with working(client, steps) as queue:
        given = request.model_dump(mode="json")
        handle = await client.start_workflow(
            names.REPAIR_TOOL, given, id=task_id, task_queue=queue, result_type=MakeEnd, execution_timeout=timedelta(seconds=60)
        )
        if steps.holds:
            await asyncio.wait_for(steps.reached.wait(), _PATIENCE_S)
            await handle.cancel()
        return await handle.result()


async def test_a_repair_that_breaks_a_call_goes_back_to_the_agent_and_then_takes_over(temporal: Client) -> None:
    steps = MakingSteps(faults=(BROKEN, ""))
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
    end = await repaired(temporal, steps := MakingSteps(faults=(BROKEN, BROKEN)))
    assert end.status is TaskState.FAILED
    assert BROKEN in end.reason
    assert end.reason.endswith("The tool 'reckoner' stays as it is; what was to be mended is its version 1.2.0.")
    assert Stage.REGISTER not in steps.stages
    assert [one.reason for one in steps.ends] == [end.reason]


async def test_one_that_may_not_take_over_fails_with_the_reason(temporal: Client) -> None:
    end = await repaired(temporal, MakingSteps(registered=Registered(refused="Meanwhile there is 1.3.0.")))
    assert end.status is TaskState.FAILED
    assert end.reason.startswith("Meanwhile there is 1.3.0.")


async def test_what_cannot_be_mended_ends_before_an_agent_is_asked(temporal: Client) -> None:
    end = await repaired(temporal, steps := MakingSteps(found=Diagnosis(refused="It is a service somewhere else.")))
    assert (end.status, end.reason) == (TaskState.FAILED, "It is a service somewhere else.")
    assert (steps.stages, steps.remarks, steps.asked) == ([Stage.INSPECT], [], ["clear up", "end"])


@pytest.mark.parametrize("holds", ["diagnose", "ask"])
async def test_wherever_it_is_cancelled_it_says_that_the_tool_stays(temporal: Client, holds: str) -> None:
    end = await repaired(temporal, steps := MakingSteps(holds=holds))
    assert end.status is TaskState.CANCELLED
    assert "'reckoner' stays as it is" in end.reason
    assert (steps.mended, steps.asked[-2:]) == ([], ["clear up", "end"])
