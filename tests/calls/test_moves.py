"""Calls that get a workflow of their own, and the owner of their claim then."""

import asyncio

import pytest
from pydantic import JsonValue

from engine.calling.lane import Flight
from engine.calling.moves import Moves
from engine.store.calls import CallTable, OvertakenError
from engine.store.claims import NOBODY, WORKFLOW, Claim, ClaimTable
from engine.store.database import Database
from tests.calls.conftest import Desk
from tests.store.test_calls import AT, RECORD, RESULT
from toolagent.contracts.calls import ErrorType, ToolCall, ToolError
from toolagent.core.calls.results import failed
from toolagent.core.failures import StoreUnavailableError
from toolagent_service.calls.lanes import LaneRefusedError

CALL = ToolCall(tool_id="echo", params={"message": "hello"})
OURS = Claim(RECORD.call_id, "f", "own", call=CALL)


class Starts:
    """Records started workflows; the ids are taken unless they `are_free`."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.are_free = True
        self.refusal: LaneRefusedError | None = None

    async def start(self, call: ToolCall, call_id: str) -> bool:
        assert call == CALL
        self.ids.append(call_id)
        if self.refusal is not None:
            raise self.refusal
        return self.are_free


@pytest.fixture
def starts() -> Starts:
    return Starts()


@pytest.fixture
def moves(desk: Desk, database: Database, starts: Starts) -> Moves:
    return Moves(ClaimTable(database), starts.start, desk.settlements.refuse, "own")


def _made(flight: Flight) -> Flight:
    flight.task = asyncio.create_task(asyncio.sleep(60))
    return flight


@pytest.mark.promise("never-twice")
async def test_a_call_that_was_taken_over_while_its_process_was_frozen_moves_and_settles_nothing(
    database: Database, moves: Moves, starts: Starts
) -> None:
    claims, calls = ClaimTable(database), CallTable(database)
    await claims.take(OURS, CALL)
    frozen = _made(Flight(OURS, CALL, is_accepted=True))
    await claims.take_over(OURS, WORKFLOW)
    await moves.move(frozen)
    assert starts.ids == [OURS.call_id]
    with pytest.raises(OvertakenError):
        await calls.settle(RECORD, RESULT, (), frozen.claim)
    frozen.cancel()


@pytest.mark.parametrize("is_accepted", [False, True])
async def test_a_call_that_is_not_made_here_is_nobodys(database: Database, moves: Moves, *, is_accepted: bool) -> None:
    claims = ClaimTable(database)
    if is_accepted:
        await claims.take(OURS, CALL)
    await moves.move(Flight(OURS, CALL, is_accepted=is_accepted))
    held = await claims.get(OURS.call_id)
    assert held is not None
    assert (held.owner, held.call) == (NOBODY, CALL)


async def test_a_call_that_is_made_here_stays_ours_and_is_claimed_by_then(database: Database, moves: Moves) -> None:
    flight = _made(Flight(OURS, CALL))
    await moves.move(flight)
    held = await ClaimTable(database).held([OURS.call_id])
    assert flight.claim.is_held_as(held[OURS.call_id])
    assert flight.is_accepted
    flight.cancel()


@pytest.mark.promise("cancel-closes")
async def test_who_was_cancelled_here_is_cancelled_in_its_claim_and_the_reverse(database: Database, moves: Moves) -> None:
    claims = ClaimTable(database)
    here = Flight(OURS, CALL, is_cancelled=True)
    await moves.move(here)
    held = await claims.get(OURS.call_id)
    assert held is not None
    assert held.is_cancelled
    there = _made(Flight(Claim("call-22222222", "f", "own"), CALL, is_accepted=True))
    await claims.take(there.claim, CALL)
    await claims.cancel(there.call_id)
    await moves.move(there)
    assert there.is_cancelled


@pytest.mark.promise("accepted-means-ended")
@pytest.mark.parametrize(("is_free", "owner"), [(True, WORKFLOW), (False, "gone")])
async def test_what_is_adopted_belongs_to_its_workflow_unless_another_one_has_its_id(
    database: Database, moves: Moves, starts: Starts, *, is_free: bool, owner: str
) -> None:
    claims = ClaimTable(database)
    left = Claim(OURS.call_id, "f", "gone", call=CALL)
    await claims.take(left, CALL)
    starts.are_free = is_free
    await moves.adopt(left)
    held = await claims.get(OURS.call_id)
    assert held is not None
    assert held.owner == owner


@pytest.mark.promise("accepted-means-ended")
@pytest.mark.parametrize(
    ("was_sent", "kind", "details"),
    [
        (False, ErrorType.VALIDATION_ERROR, {"sent": False}),
        (True, ErrorType.EXECUTION_ERROR, {"sent": True, "outcome": "unknown"}),
    ],
    ids=["not sent", "sent"],
)
async def test_what_temporal_never_takes_ends_with_who_adopts_it_and_says_whether_it_was_sent(
    database: Database, moves: Moves, starts: Starts, *, was_sent: bool, kind: ErrorType, details: JsonValue
) -> None:
    claims, calls, left = ClaimTable(database), CallTable(database), Claim(OURS.call_id, "f", "gone", call=CALL)
    await claims.take(left, CALL)
    if was_sent:
        assert await calls.mark_sent(RECORD, claim=left) == 1
    wrong = ToolError(type=ErrorType.VALIDATION_ERROR, message="Temporal does not take this call: it is too large.")
    starts.refusal = LaneRefusedError(failed(OURS.call_id, "echo", wrong, AT))
    await moves.move(Flight(left, CALL, is_accepted=True))
    held = await claims.get(OURS.call_id)
    assert held is not None
    await moves.adopt(left)  # somebody else has it by now
    assert await claims.get(OURS.call_id) == held
    await moves.adopt(held)
    record = await calls.get(OURS.call_id)
    assert record is not None
    assert record.result is not None
    assert record.result.error is not None
    assert (record.result.error.type, record.result.error.details) == (kind, details)
    assert await claims.get(OURS.call_id) is None


@pytest.mark.promise("cancel-closes")
async def test_a_cancelled_call_that_is_claimed_to_be_moved_is_claimed_as_cancelled(
    database: Database, moves: Moves, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the door dies after that, the process that takes the call over does not make it."""

    async def die(_table: ClaimTable, _call_id: str) -> None:
        raise StoreUnavailableError("It died.")

    monkeypatch.setattr(ClaimTable, "cancel", die)
    with pytest.raises(StoreUnavailableError):
        await moves.move(Flight(OURS, CALL, is_cancelled=True))
    claim = await ClaimTable(database).get(RECORD.call_id)
    assert claim is not None
    assert (claim.owner, claim.is_cancelled) == (NOBODY, True)
