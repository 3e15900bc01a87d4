"""Calls that leave the lane of a front door before they are made."""

import asyncio
import time
from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio

from engine.calling.lane import Flight, Work
from tests.calls.test_lane import Stage, flight
from toolagent.contracts.calls import ToolResult


@pytest_asyncio.fixture
async def stage() -> AsyncGenerator[Stage]:
    stage = Stage()
    yield stage
    await stage.lane.close()


async def test_a_call_that_no_batch_has_taken_can_be_taken_back(stage: Stage) -> None:
    stage.away = 1_000
    waiting = stage.lane.take(flight(1))
    await asyncio.sleep(0)
    assert stage.lane.leave(waiting)
    assert (waiting.done.result(), stage.made) == (None, [])


async def test_a_call_of_a_batch_that_temporal_did_not_take_can_be_taken_back(stage: Stage) -> None:
    stage.away = 1
    asked = stage.lane.take(flight(1))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert stage.away == 0
    assert stage.lane.leave(asked)
    await stage.run(flight(2))
    assert stage.made == ["call-00000002"]


@pytest.mark.promise("lanes-make-nothing-twice")
async def test_a_call_that_is_taken_back_while_its_batch_waits_for_the_database_is_not_made(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its caller is told so, and may send it again."""
    waits, may_go_on = asyncio.Event(), asyncio.Event()

    async def prepare() -> None:
        waits.set()
        await may_go_on.wait()

    monkeypatch.setattr(stage, "prepare", prepare)
    left, kept = flight(1), flight(2)
    running = asyncio.create_task(stage.run(left, kept))
    await asyncio.wait_for(waits.wait(), 10)
    async with asyncio.timeout(10):
        while not stage.batches:  # noqa: ASYNC110 - it tells nobody else; from then on `perform` waits for the database
            await asyncio.sleep(0)
    assert stage.lane.leave(left)
    may_go_on.set()
    taken_back, made = await running
    assert (taken_back, made is not None, stage.made) == (None, True, [kept.call_id])


async def test_a_call_that_is_cancelled_before_its_task_has_run_waits_no_longer(stage: Stage) -> None:
    """Calls that count as waiting for ever would fill the lane."""
    asked = flight(1)

    async def cancel() -> None:
        while asked.task is None:  # noqa: ASYNC110 - it is to look in each turn of the loop
            await asyncio.sleep(0)
        asked.cancel()

    done, cancelling = stage.lane.take(asked).done, asyncio.create_task(cancel())
    assert await asyncio.wait_for(done, 10) is None
    await cancelling
    assert (stage.made, stage.lane.figures.waiting) == ([], 0)


async def test_a_call_that_ends_in_the_moment_it_is_late_does_not_move(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its end looks for no claim, which the move would write."""
    make_it = stage.make

    async def make(_flight: Flight) -> bool:
        time.sleep(0.06)  # noqa: ASYNC251 - longer than the budget, with no turn for who is late
        return True

    async def make_and_settle(flight: Flight, workflow_id: str, run_id: str, work: Work) -> ToolResult | None:
        result = await make_it(flight, workflow_id, run_id, work)
        await asyncio.sleep(0.01)
        return result

    stage.make_call = make
    monkeypatch.setattr(stage, "make", make_and_settle)
    (result,) = await stage.run(flight(1))
    assert (result is not None, stage.moved) == (True, [])
