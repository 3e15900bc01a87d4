"""The CPU time of workflows with the largest permitted inputs: while a workflow task runs, the process does little else."""

import gc
import time
import uuid
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from typing import ParamSpec, TypeVar

import pytest
from pydantic import JsonValue
from temporalio.client import Client
from temporalio.worker import Worker

from tests.workflows.steps import Steps
from toolagent.client import names
from workers.collector import spare_what_stays
from workers.settings.front import LimitSettings
from workers.temporal.host_workers import WORKFLOWS

P = ParamSpec("P")
T = TypeVar("T")

MOST_S = 0.2
LIFE = timedelta(seconds=250)
MOST_VALUES: int = LimitSettings.model_fields["max_values"].default
EMPTY_LISTS: list[JsonValue] = [[] for _ in range(MOST_VALUES - 20)]
"""Nothing takes longer to read than these do."""


def many_calls(number: int) -> JsonValue:
    """With as many values together as may be, whatever their number."""
    return {"calls": [{"tool_id": "echo", "params": {"message": EMPTY_LISTS[: 100_000 // number]}} for _ in range(number)]}


INPUTS: dict[str, tuple[str, JsonValue]] = {
    "a call": (names.INVOKE_TOOL, {"tool_id": "echo", "params": {"message": EMPTY_LISTS}}),
    "a batch of one": (names.RUN_TOOLS, {"calls": [{"tool_id": "echo", "params": {"message": EMPTY_LISTS}}]}),
    "a batch of many": (names.RUN_TOOLS, many_calls(25)),
    "a batch of as many as may be": (names.RUN_TOOLS, many_calls(100)),
}


@pytest.fixture
def collector() -> Generator[None]:
    """As in the service. What is spared stays so: with it the tests themselves would be walked at each collection of later files."""
    thresholds = gc.get_threshold()
    spare_what_stays()
    yield
    gc.set_threshold(*thresholds)


class Timed(ThreadPoolExecutor):
    """Measures the CPU time of each workflow task, in seconds; that does not depend on other load."""

    def __init__(self) -> None:
        super().__init__(2)
        self.took: list[float] = []

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        def timed() -> T:
            began = time.thread_time()
            try:
                return fn(*args, **kwargs)
            finally:
                self.took.append(time.thread_time() - began)

        return super().submit(timed)


@pytest.mark.usefixtures("collector")
@pytest.mark.parametrize("what", [pytest.param(what, marks=pytest.mark.long if "as many" in what else ()) for what in INPUTS])
async def test_no_task_takes_a_fifth_of_a_second(temporal: Client, what: str) -> None:
    queue = names.TASK_QUEUE  # where a batch has its calls made
    steps = Steps(queue=queue)
    activities = [steps.admit, steps.place, steps.settle, steps.call_tool]
    workflow, given = INPUTS[what]
    with Timed() as executor:
        async with Worker(temporal, task_queue=queue, workflows=WORKFLOWS, activities=activities, workflow_task_executor=executor):
            await temporal.execute_workflow(workflow, given, id=f"limit-{uuid.uuid4().hex}", task_queue=queue, execution_timeout=LIFE)
    assert len(executor.took) > 1
    assert max(executor.took) < MOST_S
