"""The paths of a front door's lane."""

import asyncio
from collections.abc import Mapping

from temporalio import activity

from tests.workflows.ends import Walk
from tests.workflows.stage import AnyHandle, Stage
from toolagent_service import step_names
from toolagent_service.contracts.lanes import LaneBatch, LaneCall, LaneEnds

__all__ = ["PATHS"]


@activity.defn(name=step_names.MAKE_BATCH)
async def make(batch: LaneBatch) -> LaneEnds:
    """A door that makes quick calls, moves slow ones, and knows no others."""
    status = {"quick": "success", "slow": "moved"}
    return LaneEnds.model_validate(
        {"ends": [{"call_id": one.call_id, "status": status.get(one.tool_id, "unknown")} for one in batch.calls]}
    )


def batch_of(*tools: str) -> LaneBatch:
    return LaneBatch(calls=tuple(LaneCall(call_id=f"call-{place:08}", tool_id=tool) for place, tool in enumerate(tools)))


async def play_lane(stage: Stage, *batches: object) -> AnyHandle:
    async with stage.workers([make]):
        handle = await stage.start(step_names.CALL_LANE, workflow_id=f"lane-{stage.queue}")
        for batch in batches:
            await asyncio.gather(handle.execute_update(step_names.TAKE, batch), return_exceptions=True)
        await handle.signal(step_names.CLOSE)
        await handle.result()
    return handle


async def batches(stage: Stage) -> AnyHandle:
    return await play_lane(stage, batch_of("quick"), batch_of("quick", "quick", "slow", "gone"))


async def nonsense(stage: Stage) -> AnyHandle:
    """An invalid batch leaves nothing in the history."""
    return await play_lane(stage, {"calls": "many"}, batch_of("quick"))


PATHS: Mapping[str, Walk] = {"batches": Walk(batches, "completed"), "told-nonsense": Walk(nonsense, "completed")}
