"""Slots of a worker, on a real Temporal server: it polls for none while the intake is closed."""

import asyncio
from datetime import timedelta
from uuid import uuid4

from temporalio import activity, workflow
from temporalio.worker import Worker

from engine.calling.intake import Intake
from workers.temporal.connection import connect
from workers.temporal.slots import tuner_of

_SLOTS = 2


@workflow.defn
class _Many:
    """Runs this many activities concurrently on a queue. Returns the worker of each."""

    @workflow.run
    async def run(self, queue: str, number: int) -> list[str]:
        asked = (workflow.execute_activity("_take", task_queue=queue, start_to_close_timeout=timedelta(seconds=60)) for _ in range(number))
        return [str(taken) for taken in await asyncio.gather(*asked)]


class _Taking:
    """The activity of one worker; `most` is the largest number at a time."""

    def __init__(self, name: str) -> None:
        self.name, self.at_once, self.most = name, 0, 0

    @activity.defn(name="_take")
    async def take(self) -> str:
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await asyncio.sleep(0.05)
        self.at_once -= 1
        return self.name


async def test_no_more_than_the_slots_are_taken_and_none_once_the_polls_are_over(temporal_address: str) -> None:
    client, another = [await connect(temporal_address, "default", sandbox=False, patience_s=120) for _ in range(2)]
    workflows, queue = f"workflows-{uuid4()}", f"slots-{uuid4()}"
    intake, (one, other) = Intake(), (_Taking("one"), _Taking("other"))

    async def taken(number: int) -> list[str]:
        return await client.execute_workflow(_Many.run, args=[queue, number], id=f"many-{uuid4()}", task_queue=workflows)

    async with (
        Worker(client, task_queue=workflows, workflows=[_Many]),
        Worker(client, task_queue=queue, activities=[one.take], tuner=tuner_of(_SLOTS, intake)),
    ):
        assert await taken(8) == ["one"] * 8
        assert one.most == _SLOTS
        intake.heed("now")
        async with Worker(another, task_queue=queue, activities=[other.take], max_concurrent_activities=_SLOTS):
            # What a poll had brought already may be its own; each poll brings one.
            assert (await taken(20)).count("one") <= _SLOTS
            assert await taken(10) == ["other"] * 10
        intake.heed(None)
        assert await taken(4) == ["one"] * 4
