"""The client of a front door with a lane: calls that are refused after the door accepted them, or end elsewhere."""

import asyncio
from datetime import UTC, datetime

import pytest
from temporalio.client import Client

from api.client.guarded_calls import GuardedCalls
from api.client.lane_calls import LaneCalls
from api.client.recording import Recording
from engine.calling.door import Door, DoorTables
from engine.calling.lane import Flight
from engine.calls.effects.ended import UsualDurations
from engine.calls.memberships import Memberships
from engine.store.calls import CallTable
from engine.store.claims import Claim, ClaimTable
from engine.store.database import Database
from engine.store.groups import GroupTable
from engine.store.sessions import SessionTable
from tests.calls.test_lane import Stage
from tests.parts import tool_registry
from toolagent.client.failures import AnswerPendingError, CallRefusedError
from toolagent.client.handles import CallHandle
from toolagent.contracts.calls import CallMode, ErrorType, ToolCall, ToolError
from toolagent.core.calls.results import failed
from toolagent.core.failures import StoreUnavailableError, StoreUnwritableError
from toolagent_service.contracts.lanes import LaneMode

ID = "call-12345678"


async def _unasked() -> Client:
    return await Client.connect("127.0.0.1:1", lazy=True)


def _door(database: Database, stage: Stage | None = None) -> Door:
    stage = stage or Stage()
    tables = DoorTables(
        ClaimTable(database),
        CallTable(database),
        tool_registry(database),
        UsualDurations(),
        Memberships(GroupTable(database), SessionTable(database), CallTable(database)),
    )
    return Door("own", stage.lane, lambda _: False, tables, LaneMode.HARMLESS)


class OneWorkflow(GuardedCalls):
    """A client for which every call has a workflow, which can be cancelled."""

    async def cancel(self, call_id: str, workflow_id: str | None = None) -> bool:  # noqa: ARG002 - as a client does
        return True


@pytest.mark.promise("cancel-closes")
async def test_a_call_that_another_door_makes_is_cancelled_in_its_claim_though_it_has_a_workflow(database: Database) -> None:
    claims = ClaimTable(database)
    await claims.take(Claim(ID, "f", "other"), ToolCall(tool_id="echo"))
    assert await LaneCalls(OneWorkflow(await _unasked(), Recording((), lambda: None), patience_s=1.0), _door(database)).cancel(ID)
    held = await claims.get(ID)
    assert held is not None
    assert held.is_cancelled


class Away(GuardedCalls):
    """A client whose Temporal server does not answer."""

    async def cancel(self, call_id: str, workflow_id: str | None = None) -> bool:  # noqa: ARG002 - as a client does
        wrong = ToolError(type=ErrorType.UNAVAILABLE, message="Temporal is away.")
        raise AnswerPendingError(failed(call_id, "", wrong, datetime.now(UTC)))


@pytest.mark.promise("cancel-closes")
async def test_a_cancel_is_written_down_for_the_other_door_though_temporal_is_away(database: Database) -> None:
    claims = ClaimTable(database)
    await claims.take(Claim(ID, "f", "other"), ToolCall(tool_id="echo"))
    with pytest.raises(AnswerPendingError):
        await LaneCalls(Away(await _unasked(), Recording((), lambda: None), patience_s=1.0), _door(database)).cancel(ID)
    held = await claims.get(ID)
    assert held is not None
    assert held.is_cancelled


@pytest.mark.promise("cancel-closes")
async def test_a_workflow_is_told_of_a_cancel_though_the_database_is_away(database: Database) -> None:
    told = list[str]()

    class Noting(OneWorkflow):
        async def cancel(self, call_id: str, workflow_id: str | None = None) -> bool:
            told.append(call_id)
            return await super().cancel(call_id, workflow_id)

    door = _door(database)
    await database.close()
    with pytest.raises(StoreUnavailableError):
        await LaneCalls(Noting(await _unasked(), Recording((), lambda: None), patience_s=1.0), door).cancel(ID)
    assert told == [ID]


@pytest.mark.promise("cancel-closes")
async def test_the_workflow_of_a_call_that_its_own_door_makes_is_told_though_the_claim_cannot_be_cancelled(database: Database) -> None:
    told = list[str]()

    class Noting(OneWorkflow):
        async def cancel(self, call_id: str, workflow_id: str | None = None) -> bool:
            told.append(call_id)
            return await super().cancel(call_id, workflow_id)

    async def hang(_flight: Flight) -> bool:
        return await asyncio.Event().wait()

    stage = Stage()
    stage.make_call = hang
    door = _door(database, stage)
    flight = Flight(Claim(ID, "f", "own"), ToolCall(tool_id="echo"), is_accepted=True)
    stage.lane.take(flight)
    await asyncio.wait_for(stage.has_moved.wait(), 60)
    await database.close()
    with pytest.raises(StoreUnavailableError):
        await LaneCalls(Noting(await _unasked(), Recording((), lambda: None), patience_s=1.0), door).cancel(ID)
    assert told == [ID]
    await stage.lane.close()


@pytest.fixture
def looks_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at the disks each time; otherwise the result is cached for a moment."""
    monkeypatch.setattr("api.client.recording._ROOM_KNOWN_S", 0.0)


@pytest.mark.usefixtures("looks_each_time")
@pytest.mark.parametrize("mode", CallMode)
async def test_who_is_told_that_nothing_was_done_has_nothing_accepted(database: Database, mode: CallMode) -> None:
    looks = iter([None, StoreUnwritableError("disk_full", "Its disk is full.", "")])

    def require_room() -> None:
        if (failure := next(looks)) is not None:
            raise failure

    claims = ClaimTable(database)
    calls = LaneCalls(GuardedCalls(await _unasked(), Recording((), require_room), patience_s=1.0), _door(database))
    asked = calls.run if mode is CallMode.SYNC else calls.start
    with pytest.raises(CallRefusedError) as refused:
        await asked(ToolCall(tool_id="echo", mode=mode), ID)
    assert refused.value.result.error is not None
    assert refused.value.result.error.details == {"cause": "disk_full", "sent": False}
    assert await claims.get(ID) is None


@pytest.mark.promise("accepted-means-ended")
@pytest.mark.usefixtures("looks_each_time")
@pytest.mark.parametrize("mode", CallMode)
async def test_who_is_refused_takes_nothing_from_who_was_told_that_the_same_call_goes_on(database: Database, mode: CallMode) -> None:
    def require_room() -> None:
        if is_full:
            raise StoreUnwritableError("disk_full", "Its disk is full.", "")

    is_full, door, claims, call = False, _door(database), ClaimTable(database), ToolCall(tool_id="echo", mode=mode)
    await door.accept(call, ID)

    class FullLater(GuardedCalls):
        async def start(self, call: ToolCall, call_id: str | None = None, *, is_new: bool = False) -> CallHandle:
            nonlocal is_full
            is_full = True
            return await super().start(call, call_id, is_new=is_new)

    calls = LaneCalls(FullLater(await _unasked(), Recording((), require_room), patience_s=1.0), door)
    with pytest.raises(CallRefusedError):
        await (calls.run if mode is CallMode.SYNC else calls.start)(call, ID)
    assert await claims.get(ID) is not None
