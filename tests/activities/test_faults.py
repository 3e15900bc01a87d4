"""A step that fails for a reason that nobody foresaw ends; one that waits for the database does not."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.faults import MOST_FAULTS, Faults
from activities.follow_task import FollowTask
from engine.store.database import Database
from engine.store.hosts import HostTable
from engine.store.tasks import TaskTable
from tests.store.making import BUILD, task
from toolagent.contracts.making import MakeRequest, MakeTask
from toolagent.contracts.making_steps import EndStep
from toolagent.contracts.tasks import TaskState
from toolagent.core.failures import StoreUnavailableError

REQUEST = MakeRequest(task_id=task().task_id, spec=BUILD, description=task().description)
END = EndStep(request=REQUEST, status=TaskState.FAILED, reason="No.")


async def raised(work: Callable[[], Awaitable[object]]) -> Exception | None:
    try:
        await ActivityEnvironment().run(work)
    except (ApplicationError, StoreUnavailableError, ZeroDivisionError) as error:
        return error
    return None


async def test_faults_of_a_step_are_counted_apart_from_what_it_waits_for_and_end_with_its_success() -> None:
    faults, ends = Faults(2), iter([ZeroDivisionError(), StoreUnavailableError(), None, ZeroDivisionError(), ZeroDivisionError("sk-x")])

    async def step() -> None:
        with faults.bounded():
            if (end := next(ends)) is not None:
                raise end

    found = [await raised(step) for _ in range(5)]
    assert [type(error) for error in found[:4]] == [ZeroDivisionError, StoreUnavailableError, type(None), ZeroDivisionError]
    assert isinstance(found[4], ApplicationError)
    assert (found[4].non_retryable, found[4].type) == (True, "ZeroDivisionError")


class Broken(TaskTable):
    """As with a row that cannot be read."""

    async def create(self, task: MakeTask) -> MakeTask:
        raise ZeroDivisionError(task.task_id, datetime.now(UTC))


async def test_a_note_of_a_task_that_fails_for_a_reason_of_ours_is_not_tried_for_ever(database: Database) -> None:
    follow = FollowTask(Broken(database), HostTable(database, 10.0), "here")

    async def step() -> None:
        await follow.end_task(END)

    found = [await raised(step) for _ in range(MOST_FAULTS)]
    assert [isinstance(error, ApplicationError) for error in found] == [False] * (MOST_FAULTS - 1) + [True]
