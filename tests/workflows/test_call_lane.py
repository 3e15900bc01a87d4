"""A lane under one caller after the other: it goes on as a new run, and no batch is lost on the way."""

import uuid

from temporalio.client import Client
from temporalio.worker import Worker

from tests.workflows.lane_paths import batch_of, make
from toolagent_service.calls.lanes import door_queue, lane_id
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
