"""The lane of a front door: batches, one flight for each id, the budget, and Temporal outages."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from datetime import UTC, datetime

import pytest
import pytest_asyncio

from engine.calling.lane import MOST_CALLS, Flight, Lane, LaneFullError, Work
from engine.store.claims import Claim
from toolagent.contracts.calls import ToolCall, ToolResult
from toolagent_service.calls.lanes import BatchRefusedError, LaneUnreachableError
from toolagent_service.contracts.lanes import LaneBatch, LaneCall, LaneEnd

AT = datetime(2026, 11, 23, tzinfo=UTC)


def flight(number: int, size: int = 100) -> Flight:
    return Flight(Claim(f"call-{number:08}", f"f{number}", "door"), ToolCall(tool_id="echo"), b'"%s"' % (b"x" * size))


class Stage:
    """Makes calls as the test says, replaces Temporal, and records both."""

    def __init__(self) -> None:
        self.batches: list[tuple[str, ...]] = []
        self.ends: list[tuple[LaneEnd, ...]] = []
        self.made: list[str] = []
        self.moved: list[str] = []
        self.away, self.is_ending = 0, False
        self.has_moved, self.may_move = asyncio.Event(), asyncio.Event()
        self.may_move.set()
        self.make_call: Callable[[Flight], Awaitable[bool]] = self.quickly
        self.lane = Lane(self, self.send, self.move, budget_s=0.05, most_waiting=100)

    async def quickly(self, _flight: Flight) -> bool:
        return True

    async def prepare(self) -> None: ...

    async def make(self, flight: Flight, workflow_id: str, run_id: str, work: Work) -> ToolResult | None:
        assert (workflow_id, run_id) == ("lane-1", "run-1")
        self.made.append(flight.call_id)
        async with work():
            if not await self.make_call(flight):
                return None
        return ToolResult(status="success", call_id=flight.call_id, tool_id="echo", executed_at=AT)

    async def send(self, batch: LaneBatch) -> bool:
        if self.away:
            self.away -= 1
            raise LaneUnreachableError("Temporal is away.")
        self.batches.append(tuple(call.call_id for call in batch.calls))
        self.ends.append(await self.lane.perform(batch.calls, "lane-1", "run-1"))
        return self.is_ending

    async def move(self, flight: Flight) -> None:
        self.moved.append(flight.call_id)
        self.has_moved.set()
        await self.may_move.wait()

    async def run(self, *flights: Flight) -> list[ToolResult | None]:
        async with asyncio.timeout(10):
            return await asyncio.gather(*(self.lane.take(one).done for one in flights))


@pytest_asyncio.fixture
async def stage() -> AsyncGenerator[Stage]:
    stage = Stage()
    yield stage
    await stage.lane.close()


async def test_calls_that_come_while_a_batch_is_under_way_go_together(stage: Stage) -> None:
    results = await stage.run(*map(flight, range(MOST_CALLS + 10)))
    assert [len(batch) for batch in stage.batches] == [MOST_CALLS, 10]
    assert all(result is not None and result.status == "success" for result in results)


async def test_the_next_batch_goes_before_the_answer_to_one_whose_calls_are_made_once_as_many_wait(stage: Stage) -> None:
    answer, answered = asyncio.Event(), 0

    async def send(batch: LaneBatch) -> bool:
        nonlocal answered
        is_ending = await stage.send(batch)
        await answer.wait()
        answered += 1
        return is_ending

    stage.lane = Lane(stage, send, stage.move)
    await stage.run(flight(1), flight(2))
    one_more = asyncio.create_task(stage.run(flight(3)))
    await asyncio.sleep(0.05)
    assert len(stage.batches) == 1, "one waits, and two were made"
    await asyncio.gather(stage.run(flight(4)), one_more)
    third = asyncio.create_task(stage.run(flight(5), flight(6)))
    await asyncio.sleep(0.05)
    assert (len(stage.batches), answered) == (2, 0), "two have no answer yet"
    stage.is_ending = True
    answer.set()
    await third
    await asyncio.sleep(0.05)
    assert answered == len(stage.batches) == 3
    answer.clear()
    await stage.run(flight(7), flight(8))
    late = asyncio.create_task(stage.run(flight(9), flight(10)))
    await asyncio.sleep(0.05)
    assert list(map(len, stage.batches)) == [2, 2, 2, 2], "a run that ends takes one after the other"
    answer.set()
    await late


@pytest.mark.promise("accepted-means-ended")
async def test_a_batch_that_comes_again_does_not_count_as_the_next_one_being_made(stage: Stage) -> None:
    async def send(batch: LaneBatch) -> bool:
        if batch.calls[0].call_id == "call-00000002" and not stage.lane.figures.last_error:
            await stage.lane.perform((LaneCall(call_id="call-00000001", tool_id="echo"),), "lane-1", "run-1")
            await asyncio.sleep(0.05)
            stage.away = 1
        return await stage.send(batch)

    stage.lane = Lane(stage, send, stage.move)
    await stage.run(flight(1))
    second = asyncio.create_task(stage.run(flight(2)))
    await asyncio.sleep(0.02)
    assert None not in [*await stage.run(flight(3)), *await second]


async def test_a_batch_is_bounded_in_bytes(stage: Stage) -> None:
    await stage.run(*(flight(number, 200 * 1024) for number in range(3)))
    assert [len(batch) for batch in stage.batches] == [1, 1, 1]


@pytest.mark.promise("lanes-make-nothing-twice")
async def test_a_call_that_is_on_its_way_is_not_made_again(stage: Stage) -> None:
    first, again = await stage.run(flight(1), flight(1))
    assert first is again
    assert stage.made == ["call-00000001"]


@pytest.mark.promise("lanes-make-nothing-twice")
async def test_a_batch_that_comes_twice_makes_nothing_twice(stage: Stage) -> None:
    release = asyncio.Event()

    async def wait(_flight: Flight) -> bool:
        await release.wait()
        return True

    stage.make_call = wait
    running = asyncio.create_task(stage.run(flight(1)))
    await asyncio.sleep(0)
    batch = LaneBatch.model_validate({"calls": [{"call_id": "call-00000001", "tool_id": "echo"}]})
    again = await stage.lane.perform(batch.calls, "lane-1", "run-1")
    release.set()
    await running
    after = await stage.lane.perform(batch.calls, "lane-1", "run-1")
    assert stage.made == ["call-00000001"]
    assert again[0].status in {"running", "moved"}
    assert [end.status for end in after] == ["unknown"]


@pytest.mark.promise("lanes-make-nothing-twice")
async def test_a_slow_call_moves_and_is_not_made_again_and_its_neighbours_do_not_wait(stage: Stage) -> None:
    release = asyncio.Event()

    async def make(flight: Flight) -> bool:
        if flight.call_id.endswith("1"):
            await release.wait()
        return True

    stage.make_call = make
    slow = asyncio.create_task(stage.run(flight(1)))
    (quick,) = await stage.run(flight(2))
    assert quick is not None
    await asyncio.wait_for(stage.has_moved.wait(), 10)
    assert not slow.done()
    release.set()
    (result,) = await slow
    assert result is not None
    assert stage.moved == ["call-00000001"]
    assert sorted(stage.made) == ["call-00000001", "call-00000002"]
    ends = {end.call_id: end.status for ends in stage.ends for end in ends}
    assert (ends["call-00000001"] in {"running", "moved"}, ends["call-00000002"]) == (True, "success")


async def test_calls_of_one_tool_wait_for_each_other_and_what_waits_does_not_move(stage: Stage) -> None:
    made_at_once, most = 0, 0

    async def make(_flight: Flight) -> bool:
        nonlocal made_at_once, most
        made_at_once += 1
        most = max(most, made_at_once)
        await asyncio.sleep(0.03)
        made_at_once -= 1
        return True

    stage.make_call = make
    results = await stage.run(*map(flight, range(64)))
    assert all(results)
    assert (most, stage.moved) == (8, [])


async def test_calls_that_end_while_they_wait_to_move_get_no_workflow(stage: Stage) -> None:
    released, may_move = asyncio.Event(), asyncio.Event()

    async def make(_flight: Flight) -> bool:
        return await released.wait()

    async def move(flight: Flight) -> None:
        stage.moved.append(flight.call_id)
        stage.has_moved.set()
        await may_move.wait()

    stage.make_call, lane = make, Lane(stage, stage.send, move, budget_s=0.02)
    stage.lane = lane
    running = asyncio.create_task(stage.run(*map(flight, range(10))))
    await asyncio.wait_for(stage.has_moved.wait(), 10)
    released.set()
    assert all(await running)
    may_move.set()
    await lane.close()
    assert len(stage.moved) <= 2


async def test_a_call_that_is_cancelled_before_it_is_made_ends_by_a_workflow(stage: Stage) -> None:
    begun = asyncio.Event()

    async def make(_flight: Flight) -> bool:
        begun.set()
        return await asyncio.Event().wait()

    stage.make_call = make
    asked = stage.lane.take(flight(1))
    await begun.wait()
    asked.cancel()
    assert await asyncio.wait_for(asked.done, 10) is None
    assert stage.moved == [asked.call_id]


@pytest.mark.promise("cancel-closes")
async def test_calls_that_were_accepted_and_wait_for_their_turn_are_named_once_they_wait_for_longer_than_the_budget(stage: Stage) -> None:
    stage.away = 1_000
    accepted, _new = stage.lane.take(flight(1)), stage.lane.take(flight(2))
    accepted.is_accepted = True
    assert stage.lane.delayed == ()
    await asyncio.sleep(0.1)
    assert stage.lane.delayed == (accepted,)
    accepted.cancel()
    stage.away = 0
    assert await asyncio.wait_for(accepted.done, 10) is None
    assert (accepted.call_id in stage.made, stage.moved, stage.lane.delayed) == (False, [accepted.call_id], ())


async def test_a_call_whose_answer_is_written_down_is_not_cancelled(stage: Stage) -> None:
    begun = asyncio.Event()

    async def settle(flight: Flight) -> bool:
        flight.is_settling = True
        begun.set()
        await asyncio.sleep(0.01)
        return True

    stage.make_call = settle
    asked = stage.lane.take(flight(1))
    await begun.wait()
    asked.cancel()
    assert await asyncio.wait_for(asked.done, 10) is not None


async def test_what_cannot_be_made_here_gets_a_workflow(stage: Stage) -> None:
    async def not_here(_flight: Flight) -> bool:
        return False

    stage.make_call = not_here
    assert await stage.run(flight(1)) == [None]
    assert stage.moved == ["call-00000001"]


@pytest.mark.promise("never-twice")
async def test_a_call_that_moves_is_not_made_by_a_batch_that_comes_late(stage: Stage) -> None:
    """Its workflow makes it: sent here as well, a call with side effects would lose its true answer."""

    async def send(_batch: LaneBatch) -> bool:
        raise BatchRefusedError("It is refused, and made all the same later.")

    stage.lane = Lane(stage, send, stage.move)
    stage.may_move.clear()
    asked = stage.lane.take(flight(1))
    await asyncio.wait_for(stage.has_moved.wait(), 10)
    (end,) = await stage.lane.perform((LaneCall(call_id=asked.call_id, tool_id="echo"),), "lane-1", "run-1")
    stage.may_move.set()
    assert await asyncio.wait_for(asked.done, 10) is None
    assert (end.status, stage.made) == ("running", [])


async def test_temporal_that_is_away_is_asked_again_and_the_call_is_made_once(stage: Stage) -> None:
    stage.away = 2
    (result,) = await stage.run(flight(1))
    assert result is not None
    assert stage.made == ["call-00000001"]


@pytest.mark.promise("accepted-means-ended")
async def test_what_nobody_foresaw_on_the_way_to_temporal_is_tried_again(stage: Stage) -> None:
    sends, moves = [RuntimeError("first")], [RuntimeError("first")]

    async def send(batch: LaneBatch) -> bool:
        for wrong in sends:
            sends.clear()
            raise wrong
        return await stage.send(batch)

    async def move(flight: Flight) -> None:
        for wrong in moves:
            moves.clear()
            raise wrong
        await stage.move(flight)

    async def not_here(flight: Flight) -> bool:
        return not flight.call_id.endswith("2")

    stage.make_call, stage.lane = not_here, Lane(stage, send, move)
    made, moved = await stage.run(flight(1), flight(2))
    assert (made is not None, moved, stage.moved) == (True, None, ["call-00000002"])


@pytest.mark.promise("accepted-means-ended")
@pytest.mark.parametrize("error", [BatchRefusedError("It is too long."), ValueError("It cannot be written down.")])
async def test_a_call_that_no_batch_is_taken_with_gets_a_workflow_and_the_others_are_made(stage: Stage, error: Exception) -> None:
    async def send(batch: LaneBatch) -> bool:
        if "call-00000003" in [call.call_id for call in batch.calls]:
            raise error
        return await stage.send(batch)

    stage.lane = Lane(stage, send, stage.move)
    results = await stage.run(*map(flight, range(6)))
    assert [number for number, result in enumerate(results) if result is None] == [3]
    assert stage.moved == ["call-00000003"]
    await stage.run(*map(flight, range(10, 13)))
    assert len(stage.batches[-1]) == 3


async def test_a_lane_is_silent_also_where_its_batches_cannot_be_written_down(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def unwritable(**_given: object) -> LaneCall:
        raise ValueError("It cannot be written down.")

    monkeypatch.setattr("engine.calling.lane.LaneCall", unwritable)
    stage.lane.take(flight(1))
    async with asyncio.timeout(10):
        while not stage.lane.figures.last_error:  # noqa: ASYNC110 - on a busy machine the batch is made later
            await asyncio.sleep(0.01)
    assert stage.lane.silent_s > 0
    # Anybody may read that: what nobody foresaw may quote parameters.
    assert stage.lane.figures.last_error == "ValueError"


async def test_a_call_that_is_cancelled_while_it_waits_is_not_made(stage: Stage) -> None:
    stage.away = 2
    asked = stage.lane.take(flight(1))
    await asyncio.sleep(0)
    asked.cancel()
    assert await asyncio.wait_for(asked.done, 10) is None
    assert (stage.made, stage.moved) == ([], [asked.call_id])


@pytest.mark.promise("lanes-make-nothing-twice", "accepted-means-ended")
async def test_a_call_that_is_handed_on_is_not_made_and_one_that_is_on_its_way_is_not_handed_on(stage: Stage) -> None:
    stage.may_move.clear()
    stage.lane.hand_on(flight(1))
    asked_again = stage.lane.take(flight(1))
    stage.may_move.set()
    assert await asyncio.wait_for(asked_again.done, 10) is None
    on_its_way = stage.lane.take(flight(2))
    stage.lane.hand_on(flight(2))
    assert await asyncio.wait_for(on_its_way.done, 10) is not None
    assert (stage.made, stage.moved) == (["call-00000002"], ["call-00000001"])


async def test_more_calls_than_may_wait_are_refused(stage: Stage) -> None:
    for number in range(99):
        with stage.lane.room():
            stage.lane.take(flight(number))
    with stage.lane.room(), pytest.raises(LaneFullError), stage.lane.room():
        pass


async def test_a_call_that_is_cancelled_after_it_moved_and_cannot_say_how_it_ends_is_left_to_its_workflow(stage: Stage) -> None:
    async def hang(_flight: Flight) -> bool:
        await asyncio.Event().wait()
        return True

    stage.make_call = hang
    cut_off = stage.lane.take(flight(1))
    await asyncio.wait_for(stage.has_moved.wait(), 10)
    assert stage.lane.gone_on == (cut_off,)
    await asyncio.sleep(0)
    cut_off.cancel()
    assert await asyncio.wait_for(asyncio.shield(cut_off.done), 10) is None
    assert stage.lane.gone_on == ()
