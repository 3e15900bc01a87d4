"""A step with an unforeseen failure ends; a step that waits for the database goes on."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.faults import MOST_FAULTS, Faults
from activities.follow_task import FollowTask
from activities.look_at_call import LookAtCall
from engine.store.database import Database
from engine.store.hosts import HostTable
from engine.store.tasks import TaskTable
from engine.tasks.states import TaskStates
from tests.store.making import BUILD, task
from toolagent.client.failures import AnswerPendingError
from toolagent.client.temporal import ToolAgentClient
from toolagent.contracts.batches import CallLook, LookRequest
from toolagent.contracts.calls import ErrorType, ToolCall, ToolError
from toolagent.contracts.making import MakeRequest, MakeTask
from toolagent.contracts.tasks import TaskState
from toolagent.core.calls.results import failed
from toolagent.core.failures import StoreUnavailableError
from toolagent_service.contracts.making_steps import EndStep

REQUEST = MakeRequest(task_id=task().task_id, spec=BUILD, description=task().description)
END = EndStep(request=REQUEST, status=TaskState.FAILED, reason="No.")


async def raised(work: Callable[[], Awaitable[object]]) -> Exception | None:
    try:
        await ActivityEnvironment().run(work)
    except (ApplicationError, AnswerPendingError, StoreUnavailableError, ZeroDivisionError) as error:
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
    """Fails as at an unreadable row."""

    async def create(self, task: MakeTask) -> MakeTask:
        raise ZeroDivisionError(task.task_id, datetime.now(UTC))


async def test_a_note_of_a_task_that_fails_for_a_reason_of_ours_is_not_tried_for_ever(database: Database) -> None:
    follow = FollowTask(TaskStates(Broken(database), HostTable(database, 3600.0), "here"))

    async def step() -> None:
        await follow.end_task(END)

    found = [await raised(step) for _ in range(MOST_FAULTS)]
    assert [isinstance(error, ApplicationError) for error in found] == [False] * (MOST_FAULTS - 1) + [True]


class Blind(ToolAgentClient):
    """Temporal is away for as many looks as a step may have faults; then there is a fault of the service."""

    looks = 0

    async def look(self, call: ToolCall, call_id: str) -> CallLook:
        self.looks += 1
        if self.looks <= MOST_FAULTS:
            error = ToolError(type=ErrorType.UNAVAILABLE, message="Temporal does not answer.")
            raise AnswerPendingError(failed(call_id, call.tool_id, error, datetime.now(UTC)))
        raise ZeroDivisionError


async def test_a_look_at_a_call_waits_for_temporal_and_does_not_fail_for_a_reason_of_ours_for_ever() -> None:
    look = LookAtCall(Blind(await Client.connect("127.0.0.1:1", lazy=True)))

    async def step() -> None:
        await look.look_at_call(LookRequest(call=ToolCall(tool_id="t"), call_id="call-00000001"))

    found = [await raised(step) for _ in range(2 * MOST_FAULTS)]
    assert [type(error) for error in found] == [
        *[AnswerPendingError] * MOST_FAULTS,
        *[ZeroDivisionError] * (MOST_FAULTS - 1),
        ApplicationError,
    ]
