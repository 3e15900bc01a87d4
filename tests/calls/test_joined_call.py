"""A workflow waits for a call at the door that makes it."""

import asyncio
from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio

from engine.calling.joined_call import JoinedCalls
from engine.calling.lane import Flight, Lane
from engine.calling.turn import Interrupted, Told, Turn
from engine.store.claims import NOBODY, Claim, ClaimTable
from engine.store.database import Database
from tests.calls.test_lane import Stage, flight
from toolagent.contracts.calls import ToolCall
from toolagent_service.contracts.steps import JoinRequest

CALL = ToolCall(tool_id="echo")
REQUEST = JoinRequest(call_id="call-00000001", tool_id="echo")


@pytest_asyncio.fixture
async def stage() -> AsyncGenerator[Stage]:
    stage = Stage()
    yield stage
    await stage.lane.close()


def turn(*, is_call_cancelled: bool) -> Turn:
    return Turn(1, Told(), lambda _: None, lambda: is_call_cancelled)


def joined(lane: Lane, database: Database) -> JoinedCalls:
    return JoinedCalls(lane, ClaimTable(database), "door")


async def test_a_call_that_is_not_here_is_given_away(stage: Stage, database: Database) -> None:
    claims = ClaimTable(database)
    await claims.take(Claim(REQUEST.call_id, "f", "door"), CALL)
    await joined(stage.lane, database).join(REQUEST, turn(is_call_cancelled=False))
    held = await claims.get(REQUEST.call_id)
    assert held is not None
    assert held.owner == NOBODY


@pytest.mark.parametrize("is_call_cancelled", [False, True])
async def test_who_is_ended_while_it_waits_ends_the_call_only_if_that_is_cancelled(
    stage: Stage,
    database: Database,
    *,
    is_call_cancelled: bool,
) -> None:
    may_settle = asyncio.Event()

    async def settle(flight: Flight) -> bool:
        flight.is_settling = True
        return await may_settle.wait()

    stage.make_call = settle
    asked = stage.lane.take(flight(1))
    waiting = asyncio.create_task(joined(stage.lane, database).join(REQUEST, turn(is_call_cancelled=is_call_cancelled)))
    for _ in range(2):
        await asyncio.wait((waiting,), timeout=0.1)
        waiting.cancel()
    ended = await asyncio.gather(waiting, return_exceptions=True)
    assert isinstance(ended[0], asyncio.CancelledError if is_call_cancelled else Interrupted)
    assert asked.is_cancelled is is_call_cancelled
    may_settle.set()
    assert await asyncio.wait_for(asked.done, 10) is not None
