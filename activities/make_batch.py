"""Makes the calls of a batch, in the process of their front door."""

from temporalio import activity

from engine.calling.lane import Lane
from toolagent_service import step_names
from toolagent_service.contracts.lanes import LaneBatch, LaneEnds


class MakeBatch:
    """The calls are asyncio tasks of the process. The activity waits for them and never ends one."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane

    @activity.defn(name=step_names.MAKE_BATCH)
    async def make_batch(self, batch: LaneBatch) -> LaneEnds:
        info = activity.info()
        ends = await self._lane.perform(batch.calls, info.workflow_id or "", info.workflow_run_id or "")
        return LaneEnds(ends=ends, figures=self._lane.figures)
