"""How long an update is waited for, depending on the looks at its workflow."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from itertools import chain, repeat
from typing import Any, cast

import pytest
from temporalio.client import WorkflowHandle, WorkflowQueryFailedError, WorkflowUpdateRPCTimeoutOrCancelledError
from temporalio.service import RPCError, RPCStatusCode

from toolagent.client.updates import attended

LATE = RPCError("late", RPCStatusCode.DEADLINE_EXCEEDED, b"")
GONE = RPCError("gone", RPCStatusCode.NOT_FOUND, b"")


class Workflow:
    """Answers looks with these values; raises those that are exceptions."""

    def __init__(self, answers: Iterator[Exception | None]) -> None:
        self.looks, self._answers, self._looked = 0, answers, asyncio.Condition()

    async def query(self, *_: object, **_options: object) -> None:
        async with self._looked:
            self.looks += 1
            self._looked.notify_all()
        if (answer := next(self._answers)) is not None:
            raise answer

    async def looked_at(self, times: int) -> None:
        async with asyncio.timeout(60), self._looked:
            await self._looked.wait_for(lambda: self.looks >= times)


class Gone(Exception):
    """Does not answer."""


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolagent.client.updates.LOOK_S", 0.01)


async def _as_the_sdk_says_it(done: asyncio.Event) -> str:
    try:
        await done.wait()
    except asyncio.CancelledError as error:
        raise WorkflowUpdateRPCTimeoutOrCancelledError from error
    return "done"


async def _as_it_is(done: asyncio.Event) -> str:
    await done.wait()
    return "done"


def _asked(update: Awaitable[str], workflow: Workflow) -> "asyncio.Task[str]":
    handle = cast("WorkflowHandle[Any, Any]", workflow)
    return asyncio.ensure_future(attended(update, handle, "q", Gone))


@pytest.mark.parametrize("answers", [(None,), (LATE, None), (GONE,), (WorkflowQueryFailedError("no"),)])
async def test_as_long_as_one_of_two_looks_is_answered_it_is_waited_for(answers: tuple[Exception | None, ...]) -> None:
    done, workflow = asyncio.Event(), Workflow(chain.from_iterable(repeat(answers)))
    asked = _asked(_as_the_sdk_says_it(done), workflow)
    await workflow.looked_at(6)
    assert not asked.done()
    done.set()
    assert await asked == "done"
    looks = workflow.looks
    await asyncio.sleep(0.05)
    assert workflow.looks == looks, "who has the answer looks no more"


@pytest.mark.parametrize("update", [_as_the_sdk_says_it, _as_it_is])
@pytest.mark.parametrize("meets", [LATE, RuntimeError("no codec")])
async def test_two_looks_in_a_row_without_an_answer_end_the_wait(
    update: Callable[[asyncio.Event], Awaitable[str]], meets: Exception
) -> None:
    workflow = Workflow(chain([None], repeat(meets)))
    async with asyncio.timeout(60):
        with pytest.raises(Gone, match="Nothing answers"):
            await _asked(update(asyncio.Event()), workflow)
    assert workflow.looks == 3


async def test_whoever_is_cancelled_is_cancelled() -> None:
    workflow = Workflow(repeat(None))
    asked = _asked(_as_the_sdk_says_it(asyncio.Event()), workflow)
    await workflow.looked_at(1)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked


async def test_what_is_asked_while_cleaning_up_after_a_cancel_fails_as_ever() -> None:
    async def cleaned_up() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            await attended(_as_the_sdk_says_it(asyncio.Event()), cast("WorkflowHandle[Any, Any]", Workflow(repeat(LATE))), "q", Gone)
        return ""

    task = asyncio.create_task(cleaned_up())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(Gone):
        await task
