"""One more activity is an adapter, a stub and a line of a worker."""

import uuid
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import Worker


@activity.defn(name="count_words")
async def count_words(_text: str) -> int:
    raise AssertionError("A stub was run.")


class CountWords:
    @activity.defn(name="count_words")
    async def count_words(self, text: str) -> int:
        return len(text.split())


@workflow.defn
class Counted:
    @workflow.run
    async def run(self, text: str) -> int:
        return await workflow.execute_activity(count_words, text, start_to_close_timeout=timedelta(seconds=10))


async def test_an_activity_is_an_adapter_a_stub_and_a_line_of_a_worker(temporal: Client) -> None:
    queue = uuid.uuid4().hex
    async with Worker(temporal, task_queue=queue, workflows=[Counted], activities=[CountWords().count_words]):
        assert await temporal.execute_workflow(Counted.run, "two words", id=queue, task_queue=queue) == 2
