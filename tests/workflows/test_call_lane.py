"""A lane under one caller after the other: it goes on as a new run, and no batch is lost on the way."""

import uuid

import pytest
from pydantic import JsonValue
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from tests.workflows.lane_paths import batch_of, make
from toolagent.contracts.calls import ErrorType
from toolagent_service import step_names
from toolagent_service.calls.lanes import door_queue, lane_id
from toolagent_service.contracts.lanes import LaneEnds
from toolagent_service.lane_workflow import LaneWorkflow
from workflows.call_lane import CallLane

_MORE_THAN_A_RUN = 720
"""Batches of six events each; a server suggests a new run after 4,096 events."""


async def test_a_lane_goes_on_when_its_history_is_long(temporal: Client) -> None:
    door = uuid.uuid4().hex
    async with Worker(temporal, task_queue=door_queue(door), workflows=[CallLane], activities=[make], debug_mode=True):
        lane = LaneWorkflow(temporal, door)
        for _ in range(_MORE_THAN_A_RUN):
            await lane.send(batch_of("quick"))
        description = await temporal.get_workflow_handle(lane_id(door)).describe()
        await lane.close()
    assert description.run_id != description.raw_description.workflow_execution_info.first_run_id


_CALL: JsonValue = {"call_id": "call-00000001", "tool_id": "quick"}
_TOO_MANY: list[JsonValue] = [_CALL] * 257
_BATCHES: list[tuple[JsonValue, str | None]] = [
    ({"calls": [{"call_id": "call-00000001", "tool_id": "quick", "call": {"params": {}}, "of_tomorrow": 1}], "of_tomorrow": [1]}, None),
    ({"calls": [_CALL]}, None),
    ({"calls": [{"tool_id": "quick"}]}, "calls.0.call_id: Field required"),
    ({"of_tomorrow": [_CALL]}, "calls: Field required"),
    ({"calls": []}, "calls: Tuple should have at least 1 item"),
    ({"calls": _TOO_MANY}, "calls: Tuple should have at most 256 items"),
    ("no batch", "input: Input should be a valid dictionary"),
    (None, "input: Input should be a valid dictionary"),
]


@pytest.mark.parametrize(("batch", "said"), _BATCHES)
async def test_a_batch_of_another_version_is_taken_as_far_as_it_is_one_or_refused_clearly(
    temporal: Client, batch: JsonValue, said: str | None
) -> None:
    door = uuid.uuid4().hex
    async with Worker(temporal, task_queue=door_queue(door), workflows=[CallLane], activities=[make], debug_mode=True):
        lane = LaneWorkflow(temporal, door)
        await lane.send(batch_of("quick"))
        handle = temporal.get_workflow_handle(lane_id(door))
        if said is None:
            ends = await handle.execute_update(step_names.TAKE, batch, result_type=LaneEnds)
            assert [end.status for end in ends.ends] == ["success"]
        else:
            with pytest.raises(WorkflowUpdateFailedError) as refused:
                await handle.execute_update(step_names.TAKE, batch)
            cause = refused.value.cause
            assert isinstance(cause, ApplicationError)
            assert (cause.type, said in cause.message) == (ErrorType.VALIDATION_ERROR.value, True), cause.message
        await lane.send(batch_of("quick"))
        await lane.close()
