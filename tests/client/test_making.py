"""Tasks that make tools, with a real Temporal server and with the fake client."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import pytest
from temporalio import workflow
from temporalio.client import Client
from temporalio.exceptions import is_cancelled_exception
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from toolagent.client import names
from toolagent.client.failures import MakingUnreachableError
from toolagent.client.making import Making
from toolagent.contracts.making import Guidance, MakeRequest
from toolagent.contracts.task_specs import BuildTool, RepairTool
from toolagent.core.failures import TaskConflictError
from toolagent.core.task_requests import AskedOtherwiseError
from toolagent.testing.fake_making import FakeMaking

SPEC = BuildTool(tool_name="word_counter", description="Count.")


@workflow.defn(name=names.CREATE_TOOL)
class Listening:
    """Runs until it is cancelled, and returns the messages that it got."""

    @workflow.init
    def __init__(self, _request: MakeRequest) -> None:
        self._heard: list[str] = []

    @workflow.run
    async def run(self, _request: MakeRequest) -> list[str]:
        try:
            await workflow.wait_condition(lambda: False)
        except BaseException as error:
            if not is_cancelled_exception(error):
                raise
        return self._heard

    @workflow.signal(name=names.GUIDE)
    def guide(self, guidance: Guidance) -> None:
        self._heard.append(guidance.text)


def request(number: int) -> MakeRequest:
    return MakeRequest(task_id=f"create_{number:08x}", spec=SPEC, description="d")


async def check(making: Making | FakeMaking, number: int, end: Callable[[str], Awaitable[None]]) -> None:
    """Checks the promises of both clients."""
    task_id = request(number).task_id
    assert await making.cancel(task_id) is False
    assert await making.guide(task_id, Guidance(id="g", text="x")) is False
    await asyncio.gather(*(making.start(request(number)) for _ in range(3)))
    with pytest.raises(AskedOtherwiseError) as conflict:
        await making.start(request(number).model_copy(update={"description": "other"}))
    assert conflict.value.asked == request(number)
    assert await making.guide(task_id, Guidance(id="g", text="faster")) is True
    assert await making.cancel(task_id) is True
    await end(task_id)
    assert await making.guide(task_id, Guidance(id="h", text="late")) is False
    await making.start(request(number))


async def test_a_task_is_started_once_spoken_to_and_cancelled(temporal: Client) -> None:
    heard: list[object] = []

    async def end(task_id: str) -> None:
        heard.append(await temporal.get_workflow_handle(task_id).result())

    runner = UnsandboxedWorkflowRunner()
    async with Worker(temporal, task_queue=names.TASK_QUEUE, workflows=[Listening], workflow_runner=runner):
        await check(Making(temporal), 0xE1, end)
    assert heard == [["faster"]]
    description = await temporal.get_workflow_handle(request(0xE1).task_id).describe()
    found_by = description.typed_search_attributes
    assert (found_by.get(names.TOOL_ID), found_by.get(names.TASK_TYPE)) == ("word_counter", "build_tool")


async def test_the_fake_promises_the_same() -> None:
    fake = FakeMaking()

    async def end(task_id: str) -> None:
        fake.at_work.discard(task_id)

    await check(fake, 1, end)
    assert [said.text for _, said in fake.said] == ["faster"]


async def test_a_repair_is_a_workflow_of_its_own(temporal: Client) -> None:
    asked = MakeRequest(task_id="repair_000000e2", spec=RepairTool(tool_id="echo"))
    await Making(temporal).start(asked)
    handle = temporal.get_workflow_handle(asked.task_id)
    description = await handle.describe()
    assert (description.workflow_type, description.typed_search_attributes.get(names.TASK_TYPE)) == (names.REPAIR_TOOL, "repair_tool")
    await handle.terminate()


async def test_a_task_that_another_version_asked_for_and_cannot_be_read_is_a_conflict(temporal: Client) -> None:
    given = {"task_id": request(0xE3).task_id, "spec": {"type": "of_another_version"}}
    handle = await temporal.start_workflow(names.CREATE_TOOL, given, id=request(0xE3).task_id, task_queue=names.TASK_QUEUE)
    with pytest.raises(TaskConflictError) as conflict:
        await Making(temporal).start(request(0xE3))
    assert not isinstance(conflict.value, AskedOtherwiseError)
    await handle.terminate()


async def test_a_server_that_does_not_answer_is_said_to_be_away(silent_temporal: Client) -> None:
    making = Making(silent_temporal)
    for ask in (partial(making.start, request(3)), partial(making.cancel, "create_00000003")):
        with pytest.raises(MakingUnreachableError):
            await ask()
