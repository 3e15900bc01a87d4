"""Calls that a door makes and somebody else has ended."""

import pytest

from engine.calling.lane import Flight
from engine.store.claims import WORKFLOW, Claim, ClaimTable
from engine.store.database import Database
from engine.upkeep.ended_elsewhere import EndedElsewhere
from toolagent.contracts.calls import ToolCall

CALL = ToolCall(tool_id="echo", params={"message": "hello"})


def flight(number: int) -> Flight:
    return Flight(Claim(f"call-{number:08}", "f", "own"), CALL, 100, is_accepted=True)


@pytest.mark.promise("cancel-closes")
async def test_who_was_cancelled_ended_or_taken_over_is_told_and_nobody_else_is(database: Database) -> None:
    claims = ClaimTable(database)
    goes_on, cancelled, ended, overtaken = flights = [*map(flight, range(4))]
    for one in (goes_on, cancelled, overtaken):
        await claims.take(one.claim, CALL)
    await claims.cancel(cancelled.call_id)
    await claims.take_over(overtaken.claim, WORKFLOW)
    await EndedElsewhere(lambda: flights, claims).look()
    assert [one for one in flights if one.is_cancelled] == [cancelled, ended, overtaken]
