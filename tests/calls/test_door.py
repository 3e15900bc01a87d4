"""A front door: what it accepts, what it gives away, and what it says when the lane stands still."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass

import pytest
import pytest_asyncio
from pydantic import JsonValue

from engine.calling.door import Door, DoorTables
from engine.calling.lane import Flight, Lane
from engine.calls.memberships import Memberships
from engine.calls.usual_durations import UsualDurations
from engine.store.claims import NOBODY, WORKFLOW, Claim, ClaimTable, Standing
from engine.store.database import Database
from engine.store.groups import GroupTable
from engine.store.sessions import SessionTable
from tests.calls.conftest import Desk
from tests.calls.test_lane import AT, Stage, flight
from tests.parts import tool_registry
from tests.store.test_calls import RECORD
from toolagent.contracts.calls import ErrorType, ToolCall, ToolResult
from toolagent.contracts.groups import ToolGroup
from toolagent.core.calls.idempotency import fingerprint
from toolagent.core.calls.results import IDEMPOTENCY_CONFLICT, reason_of
from toolagent_service.calls.lanes import Elsewhere, LanePendingError, LaneRefusedError
from toolagent_service.contracts.lanes import LaneMode

ID = "call-12345678"


def call(version: str | None = None, **params: JsonValue) -> ToolCall:
    return ToolCall(tool_id="pure", params=params, version=version)


class Claims(ClaimTable):
    """Says what it has written when it may."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.may_return = asyncio.Event()
        self.may_return.set()

    async def take(self, claim: Claim, call: ToolCall) -> tuple[Standing, Claim]:
        taken = await super().take(claim, call)
        await self.may_return.wait()
        return taken


@dataclass
class Front:
    door: Door
    claims: Claims
    stage: Stage


@pytest_asyncio.fixture
async def front(desk: Desk, database: Database, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Front]:
    monkeypatch.setattr("engine.calling.door._PATIENCE_S", 0.0)
    stage, claims = Stage(), Claims(database)
    stage.lane = Lane(stage, stage.send, stage.move, most_waiting=1)
    tables = DoorTables(
        claims, desk.calls, tool_registry(database), UsualDurations(), Memberships(GroupTable(database), SessionTable(database), desk.calls)
    )
    yield Front(Door("own", stage.lane, lambda _: True, tables, LaneMode.HARMLESS), claims, stage)
    await stage.lane.close()


@pytest.mark.promise("a-key-is-not-reused")
async def test_an_id_that_was_given_away_is_taken(front: Front) -> None:
    await front.door.accept(call(text="one"), ID)
    held = await front.claims.get(ID)
    assert held is not None
    assert (held.owner, held.call) == (NOBODY, call(text="one"))
    assert await front.door.make(call(text="one"), ID, is_new=False) == Elsewhere(ID)
    with pytest.raises(LaneRefusedError):
        await front.door.make(call(text="two"), ID, is_new=False)
    with pytest.raises(LaneRefusedError):
        await front.door.accept(call(text="two"), ID)
    assert front.stage.made == []


async def test_what_cannot_be_looked_up_is_left_to_a_workflow(front: Front, database: Database) -> None:
    assert await front.door.make(call(version="no version"), ID, is_new=True) == Elsewhere(None)
    await database.close()
    assert await front.door.make(call(), ID, is_new=True) == Elsewhere(None)
    assert await front.door.make(call(), ID, is_new=False) == Elsewhere(ID)


async def test_while_temporal_is_silent_who_is_not_accepted_is_sent_away_and_who_is_goes_on(front: Front) -> None:
    front.stage.away = 1_000_000
    with pytest.raises(LanePendingError) as pending:
        await front.door.make(call(), ID, is_new=False)
    assert pending.value.result.call_id == ID
    front.stage.away = 0
    result = await front.door.make(call(), ID, is_new=False)
    assert isinstance(result, ToolResult)
    front.stage.away = 1_000_000
    with pytest.raises(LaneRefusedError) as refused:
        await front.door.make(call(), "call-22222222", is_new=True)
    assert refused.value.result.error is not None
    assert (refused.value.result.error.type, refused.value.result.error.details) == (ErrorType.UNAVAILABLE, {"sent": False})
    assert front.stage.made == [ID]


async def test_who_is_not_accepted_and_cannot_be_moved_is_told_that_nobody_knows(front: Front) -> None:
    """It is made when the database is back, or not: what was lost while it was claimed may have been written."""

    async def not_here(_flight: Flight) -> bool:
        return False

    front.stage.make_call = not_here
    front.stage.may_move.clear()
    with pytest.raises(LanePendingError) as pending:
        await asyncio.wait_for(front.door.make(call(), ID, is_new=True), 30)
    assert pending.value.result.error is not None
    assert (pending.value.result.error.type, pending.value.result.error.details) == (ErrorType.UNAVAILABLE, {"outcome": "unknown"})
    assert "Temporal or the database" in pending.value.result.error.message


@pytest.mark.parametrize(("is_new", "details"), [(False, {}), (True, {"outcome": "unknown"})])
async def test_who_waits_for_an_answer_that_cannot_be_written_down_is_told_that_the_call_goes_on(
    front: Front, *, is_new: bool, details: dict[str, JsonValue]
) -> None:
    """The database went away after the tool had answered."""
    is_back = asyncio.Event()

    async def settle(flight: Flight) -> bool:
        flight.is_settling = True
        return await is_back.wait()

    front.stage.make_call = settle
    with pytest.raises(LanePendingError) as pending:
        await asyncio.wait_for(front.door.make(call(), ID, is_new=is_new), 10)
    assert pending.value.result.error is not None
    assert (pending.value.result.error.type, pending.value.result.error.details) == (ErrorType.UNAVAILABLE, details)
    made = asyncio.create_task(front.door.make(call(), ID, is_new=is_new))
    await asyncio.sleep(0)
    is_back.set()
    assert isinstance(await made, ToolResult)


@pytest.mark.parametrize("is_new", [True, False])
async def test_who_is_sent_away_from_a_full_lane_has_nothing_accepted(front: Front, *, is_new: bool) -> None:
    front.stage.away = 1_000_000
    front.stage.lane.take(flight(1))
    with pytest.raises(LaneRefusedError):
        await front.door.make(call(), ID, is_new=is_new)
    assert await front.claims.get(ID) is None


@pytest.mark.promise("cancel-closes")
async def test_a_cancel_is_kept_for_who_takes_the_call_over(front: Front) -> None:
    front.stage.away = 1_000_000
    with pytest.raises(LanePendingError):
        await front.door.make(call(), ID, is_new=False)
    assert await front.door.cancel(ID)
    held = await front.claims.get(ID)
    assert held is not None
    assert held.is_cancelled


@pytest.mark.promise("cancel-closes")
async def test_a_call_that_gets_its_workflow_while_it_is_cancelled_is_not_ended_by_its_door_alone(front: Front) -> None:
    async def not_here(_flight: Flight) -> bool:
        return False

    front.stage.make_call = not_here
    front.stage.may_move.clear()
    made = asyncio.create_task(front.door.make(call(), ID, is_new=False))
    await asyncio.wait_for(front.stage.has_moved.wait(), 10)
    cancelled = asyncio.create_task(front.door.cancel(ID))
    await asyncio.wait((cancelled,), timeout=0.2)
    front.stage.may_move.set()
    assert await cancelled is False
    assert await made == Elsewhere(ID, has_begun=True)


@pytest.mark.promise("cancel-closes")
async def test_a_call_that_has_moved_is_told_here_before_its_workflow_is(front: Front) -> None:
    async def hang(_flight: Flight) -> bool:
        return await asyncio.Event().wait()

    front.stage.make_call = hang
    made = asyncio.create_task(front.door.make(call(), ID, is_new=False))
    await asyncio.wait_for(front.stage.has_moved.wait(), 10)
    assert await front.door.cancel(ID) is False
    assert await asyncio.wait_for(made, 10) == Elsewhere(ID, has_begun=True)


@pytest.mark.promise("accepted-means-ended")
async def test_who_finds_a_full_lane_is_not_sent_away_from_a_call_that_is_being_claimed_and_takes_no_claim_from_it(front: Front) -> None:
    front.stage.away = 1_000_000
    front.claims.may_return.clear()
    asked = [asyncio.create_task(front.door.make(call(), ID, is_new=False)) for _ in range(2)]
    await asyncio.wait(asked, timeout=0.3)
    front.claims.may_return.set()
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert {type(answer) for answer in answers} == {LanePendingError, Elsewhere}
    assert await front.claims.get(ID) is not None


@pytest.mark.promise("accepted-means-ended", "never-twice")
@pytest.mark.parametrize("owner", ["other", WORKFLOW])
async def test_a_full_lane_sends_nobody_away_whose_call_was_accepted_before(front: Front, owner: str) -> None:
    front.stage.away = 1_000_000
    front.stage.lane.take(flight(1))
    await front.claims.take(Claim(ID, fingerprint(call()), owner), call())
    assert await front.door.make(call(), ID, is_new=False) == Elsewhere(ID)
    with pytest.raises(LaneRefusedError) as refused:
        await front.door.make(call(text="another"), ID, is_new=False)
    assert reason_of(refused.value.result) == IDEMPOTENCY_CONFLICT


@pytest.mark.promise("a-key-is-one-call")
async def test_a_full_lane_says_how_a_call_has_ended(front: Front, desk: Desk) -> None:
    result = ToolResult(status="success", result=3, call_id=ID, tool_id="pure", executed_at=AT)
    record = RECORD.model_copy(update={"call_id": ID, "fingerprint": fingerprint(call())})
    await desk.calls.settle(record, result, ())
    front.stage.away = 1_000_000
    front.stage.lane.take(flight(1))
    assert await front.door.make(call(), ID, is_new=False) == result


@pytest.mark.promise("never-twice")
async def test_a_call_with_an_id_that_a_new_call_may_have_is_left_to_the_workflow_of_that_one(front: Front) -> None:
    """That one has no claim, so that two would make the call, and the second take the first one's mark for a lost attempt."""
    ours = f"call-{'a1' * 16}"
    assert await front.door.make(call(), ours, is_new=False) == Elsewhere(ours)
    assert front.stage.made == []
    assert isinstance(await front.door.make(call(), f"call-{'b2' * 16}", is_new=True), ToolResult)
    keyed = call().model_copy(update={"idempotency_key": "k"})
    assert isinstance(await front.door.make(keyed, f"call-{'c3' * 16}", is_new=False), ToolResult)


async def test_a_tool_that_has_a_role_in_a_group_takes_no_lane(front: Front, database: Database) -> None:
    steps: JsonValue = [{"tool_id": "pure", "role": "launch"}, {"tool_id": "stitch", "role": "stop"}]
    fields: dict[str, JsonValue] = {"group_id": "servers", "name": "Servers", "tool_ids": ["pure", "stitch"], "lifecycle": True}
    await GroupTable(database).replace([ToolGroup.model_validate({**fields, "steps": steps})])
    assert await front.door.make(ToolCall(tool_id="pure"), "call-87654321", is_new=True) == Elsewhere(None)
    assert not front.stage.batches


async def test_a_call_too_deep_for_a_batch_takes_no_lane(front: Front) -> None:
    deep: JsonValue = 1
    for _ in range(185):
        deep = {"a": deep}
    assert await front.door.make(call(deep=deep), "call-87654321", is_new=True) == Elsewhere(None)
    assert not front.stage.batches
