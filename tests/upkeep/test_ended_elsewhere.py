"""Calls that a door makes and somebody else has ended."""

import pytest

from engine.calling.lane import Flight
from engine.store.claims import WORKFLOW, Claim, ClaimTable
from engine.store.database import Database
from engine.upkeep.ended_elsewhere import EndedElsewhere
from toolagent.contracts.calls import ToolCall

CALL = ToolCall(tool_id="echo", params={"message": "hello"})


def flight(number: int, *, is_claimed: bool = True) -> Flight:
    call_id = f"call-{number:08}"
    return Flight(call_id, CALL, "f", 100, Claim(call_id, "f", "own") if is_claimed else None)


@pytest.mark.promise("cancel-closes")
async def test_who_was_cancelled_ended_or_taken_over_is_told_and_nobody_else_is(database: Database) -> None:
    claims = ClaimTable(database)
    goes_on, cancelled, ended, overtaken = flights = [*map(flight, range(4))]
    flights.append(flight(4, is_claimed=False))
    for one in (goes_on, cancelled, overtaken):
        assert one.claim is not None
        await claims.take(one.claim, CALL)
    await claims.cancel(cancelled.call_id)
    assert overtaken.claim is not None
    await claims.take_over(overtaken.claim, WORKFLOW)
    await EndedElsewhere(lambda: flights, claims).look()
    assert [one for one in flights if one.is_cancelled] == [cancelled, ended, overtaken]
