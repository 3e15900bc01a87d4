"""Calls of a door that another process has ended."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from engine.calling.lane import Flight
from engine.store.claims import WORKFLOW, Claim, ClaimTable
from engine.store.database import Database
from engine.upkeep.hosts.ended_elsewhere import EndedElsewhere
from toolagent.contracts.calls import ToolCall

CALL = ToolCall(tool_id="echo", params={"message": "hello"})


@dataclass
class Lane:
    gone_on: Sequence[Flight] = ()
    delayed: Sequence[Flight] = ()


def flight(number: int) -> Flight:
    return Flight(Claim(f"call-{number:08}", "f", "own"), CALL, is_accepted=True)


@pytest.mark.promise("cancel-closes")
async def test_who_was_cancelled_ended_or_taken_over_is_told_and_nobody_else_is(database: Database) -> None:
    claims = ClaimTable(database)
    goes_on, cancelled, ended, overtaken = flights = [*map(flight, range(4))]
    for one in (goes_on, cancelled, overtaken):
        await claims.take(one.claim, CALL)
    await claims.cancel(cancelled.call_id)
    await claims.take_over(overtaken.claim, WORKFLOW)
    await EndedElsewhere("own", Lane(gone_on=flights), claims).look()
    assert [one for one in flights if one.is_cancelled] == [cancelled, ended, overtaken]


@pytest.mark.promise("cancel-closes")
async def test_a_call_that_waits_for_its_turn_is_told_of_a_cancel_at_another_door(database: Database) -> None:
    claims = ClaimTable(database)
    waits, cancelled, came_late = flights = [*map(flight, range(3))]
    for one in flights:
        await claims.take(one.claim, CALL)
    for one in (cancelled, came_late):
        await claims.cancel(one.call_id)
    await EndedElsewhere("own", Lane(delayed=(waits, cancelled)), claims).look()
    assert [one for one in flights if one.is_cancelled] == [cancelled]
