"""A lane with consecutive callers continues as a new run, and loses no batch."""

import asyncio
import json
import uuid
from datetime import timedelta

import pytest
from pydantic import JsonValue
from temporalio import activity
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from tests.workflows.lane_paths import batch_of, make
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.lanes import LaneFigures
from toolagent_service import step_names
from toolagent_service.calls.lanes import LaneUnreachableError, door_queue, lane_id
from toolagent_service.contracts.lanes import LaneBatch, LaneEnds
from toolagent_service.lane_workflow import LaneWorkflow
from workflows.calls.call_lane import CallLane

_REFUSED_S = 1.5
"""Which Temporal takes to say so, while a batch is made."""

_ALMOST_A_RUN = 19
"""Batches of 256 calls; one more, and it takes no other."""


@pytest.mark.parametrize("most", [12, pytest.param(600, marks=pytest.mark.long)])
async def test_a_lane_goes_on_when_its_history_is_long(temporal: Client, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workflows.calls.call_lane._MOST_UPDATES", most)
    door = uuid.uuid4().hex
    async with Worker(temporal, task_queue=door_queue(door), workflows=[CallLane], activities=[make], debug_mode=True):
        lane = LaneWorkflow(temporal, door)
        said = [await lane.send(batch_of("quick")) for _ in range(most + 1)]
        assert said.index(True) == most - 3, "before two more, its door hears that the run is about to end"
        description = await temporal.get_workflow_handle(lane_id(door)).describe()
        await lane.close()
    assert description.run_id != description.raw_description.workflow_execution_info.first_run_id


async def test_people_see_what_a_batch_holds_and_how_its_lane_does(temporal: Client) -> None:
    figures = LaneFigures(calls=9, moved=2, waiting=1, per_second=3.5, last_error="Temporal is away.")

    @activity.defn(name=step_names.MAKE_BATCH)
    async def make_some(_batch: LaneBatch) -> LaneEnds:
        return LaneEnds(figures=figures)

    door = uuid.uuid4().hex
    async with Worker(temporal, task_queue=door_queue(door), workflows=[CallLane], activities=[make_some], debug_mode=True):
        lane = LaneWorkflow(temporal, door)
        await lane.send(batch_of("echo", "sum", "echo", "a", "b", "c"))
        handle = temporal.get_workflow_handle(lane_id(door))
        seen = await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
        made = [event async for event in handle.fetch_history_events() if event.HasField("marker_recorded_event_attributes")]
        await lane.close()
    assert [json.loads(event.user_metadata.summary.data) for event in made] == ["echo ×2, sum, a, b and 1 more tools"]
    told = ("**3.5** calls a second lately, **9** since the door was opened", "**1** waiting, **2** moved to a workflow of their own")
    assert seen.current_details == "\n\n".join([*told, "last error: Temporal is away."])


async def test_a_batch_that_comes_while_a_run_ends_is_made_by_the_next(temporal: Client) -> None:
    door, has_begun, go_on, made = uuid.uuid4().hex, asyncio.Event(), asyncio.Event(), list[str]()

    @activity.defn(name=step_names.MAKE_BATCH)
    async def make_slowly(batch: LaneBatch) -> LaneEnds:
        if batch.calls[0].tool_id == "slow":
            has_begun.set()
            await go_on.wait()
        made.append(batch.calls[0].tool_id)
        return LaneEnds()

    async with Worker(temporal, task_queue=door_queue(door), workflows=[CallLane], activities=[make_slowly], debug_mode=True):
        lane = LaneWorkflow(temporal, door)
        for _ in range(_ALMOST_A_RUN):
            await lane.send(batch_of(*["quick"] * 256))
        slow = asyncio.create_task(lane.send(batch_of("slow")))
        await has_begun.wait()
        await lane.send(batch_of(*["quick"] * 256))
        last = asyncio.create_task(lane.send(batch_of("last")))
        await asyncio.sleep(_REFUSED_S)
        assert "last" not in made
        assert not last.done()
        go_on.set()
        await asyncio.gather(slow, last)
        assert made[-1] == "last"
        await lane.close()


async def test_a_lane_whose_worker_does_not_end_it_in_time_is_terminated_with_its_door(
    temporal: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolagent_service.lane_workflow._CLOSING_S", 0.2)
    door = uuid.uuid4().hex
    lane = LaneWorkflow(temporal, door)
    async with Worker(temporal, task_queue=door_queue(door), workflows=[CallLane], activities=[make], debug_mode=True):
        await lane.send(batch_of("quick"))
    await lane.close()
    description = await temporal.get_workflow_handle(lane_id(door)).describe()
    assert (description.status, lane.is_open) == (WorkflowExecutionStatus.TERMINATED, False)


@pytest.mark.promise("accepted-means-ended")
async def test_a_lane_whose_id_another_workflow_holds_is_begun_anew_and_a_cancel_meanwhile_is_heard(
    temporal: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This server reports every second that nothing has happened yet."""
    monkeypatch.setattr("toolagent_service.lane_workflow._PATIENCE", timedelta(seconds=2))
    monkeypatch.setattr("toolagent_service.lane_workflow._SILENT_S", 3.0)
    door = uuid.uuid4().hex
    other = await temporal.start_workflow("Nothing", id=lane_id(door), task_queue=f"nobody-{door}")
    async with Worker(temporal, task_queue=door_queue(door), workflows=[CallLane], activities=[make], debug_mode=True):
        lane = LaneWorkflow(temporal, door)
        sending = asyncio.create_task(lane.send(batch_of("quick")))
        await asyncio.wait((sending,), timeout=1)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        for _ in range(2):
            with pytest.raises(LaneUnreachableError):
                await lane.send(batch_of("quick"))
        monkeypatch.setattr("toolagent_service.lane_workflow._PATIENCE", timedelta(seconds=60))
        await lane.send(batch_of("quick"))
        await lane.close()
    held = temporal.get_workflow_handle(other.id, run_id=other.result_run_id)
    assert (await held.describe()).status is WorkflowExecutionStatus.TERMINATED


async def test_batches_that_are_silent_together_are_one_silence(temporal: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """This process may have been stopped."""
    monkeypatch.setattr("toolagent_service.lane_workflow._PATIENCE", timedelta(seconds=2))
    monkeypatch.setattr("toolagent_service.lane_workflow._SILENT_S", 1.0)
    door = uuid.uuid4().hex
    other = await temporal.start_workflow("Nothing", id=lane_id(door), task_queue=f"nobody-{door}")
    lane = LaneWorkflow(temporal, door)
    ends = await asyncio.gather(lane.send(batch_of("quick")), lane.send(batch_of("quick")), return_exceptions=True)
    assert [type(end) for end in ends] == [LaneUnreachableError] * 2
    with pytest.raises(LaneUnreachableError):
        await lane.send(batch_of("quick"))
    assert (await temporal.get_workflow_handle(other.id, run_id=other.result_run_id).describe()).status is WorkflowExecutionStatus.RUNNING
    await other.terminate()


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
