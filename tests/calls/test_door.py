"""A front door: the calls that it accepts, those that it gives away, and its errors while the lane is stuck."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

import pytest
import pytest_asyncio
from pydantic import JsonValue

from engine.calling.door import Door, DoorTables
from engine.calling.lane import Flight, Lane
from engine.calls.effects.ended import UsualDurations
from engine.store.calls import CallTable
from engine.store.claims import NOBODY, WORKFLOW, Claim, ClaimTable, Standing
from engine.store.database import CommitUnknownError, Database
from engine.store.doors import DoorTable
from engine.store.groups import GroupTable
from engine.upkeep.hosts.doors import DoorKeeper
from tests.calls.conftest import Desk
from tests.calls.parts import memberships_of
from tests.calls.test_lane import AT, Stage, flight
from tests.parts import tool_registry
from tests.store.test_calls import RECORD
from tests.store.test_lost_commits import deaf_to_one_commit
from toolagent.contracts.calls import ErrorType, ToolCall, ToolResult
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.groups import ToolGroup
from toolagent.contracts.manifest import SideEffectScope, ToolManifest
from toolagent.contracts.sources import McpSource, RemoteSource
from toolagent.core.calls.idempotency import fingerprint
from toolagent.core.calls.results import IDEMPOTENCY_CONFLICT, reason_of
from toolagent_service.calls.lanes import Elsewhere, LanePendingError, LaneRefusedError
from toolagent_service.calls.ways import MOST_BYTES
from toolagent_service.contracts.lanes import LaneMode

ID = "call-12345678"
SOURCE = RemoteSource(remote_url="http://127.0.0.1:1/")


def call(version: str | None = None, **params: JsonValue) -> ToolCall:
    return ToolCall(tool_id="pure", params=params, version=version)


class Claims(ClaimTable):
    """A table that confirms its writes when the test lets it."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.may_return = asyncio.Event()
        self.may_return.set()
        self.is_deaf = False

    async def take(self, claim: Claim, call: ToolCall) -> tuple[Standing, Claim]:
        taken = await super().take(claim, call)
        await self.may_return.wait()
        if self.is_deaf:
            raise CommitUnknownError("The connection was lost.")
        return taken


@dataclass
class Front:
    door: Door
    claims: Claims
    stage: Stage
    durations: UsualDurations
    not_ready: set[str]


@pytest_asyncio.fixture
async def front(desk: Desk, database: Database, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Front]:
    monkeypatch.setattr("engine.calling.door._PATIENCE_S", 0.0)
    stage, claims, durations, not_ready = Stage(), Claims(database), UsualDurations(), set[str]()
    stage.lane = Lane(stage, stage.send, stage.move, most_waiting=1)
    tables = DoorTables(claims, desk.calls, tool_registry(database), durations, memberships_of(database))
    door = Door("own", stage.lane, lambda entry: entry.manifest.tool_id not in not_ready, tables, LaneMode.HARMLESS)
    yield Front(door, claims, stage, durations, not_ready)
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


async def test_while_temporal_is_silent_who_is_not_accepted_is_sent_away_and_who_is_goes_on(
    front: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    front.stage.away = 1_000_000
    with pytest.raises(LanePendingError) as pending:
        await front.door.make(call(), ID, is_new=False)
    assert pending.value.result.call_id == ID
    flight = front.stage.lane.flight

    def joined(call_id: str) -> Flight | None:
        front.stage.away = 0
        return flight(call_id)

    with monkeypatch.context() as patient:
        patient.setattr("engine.calling.door._PATIENCE_S", 30.0)  # it is sent again within a second
        patient.setattr(front.stage.lane, "flight", joined)
        result = await front.door.make(call(), ID, is_new=False)
    assert isinstance(result, ToolResult)
    front.stage.away = 1_000_000
    with pytest.raises(LaneRefusedError) as refused:
        await front.door.make(call(), "call-22222222", is_new=True)
    assert refused.value.result.error is not None
    assert (refused.value.result.error.type, refused.value.result.error.details) == (ErrorType.UNAVAILABLE, {"sent": False})
    assert front.stage.made == [ID]


async def test_who_is_not_accepted_and_cannot_be_moved_is_told_that_nobody_knows(front: Front) -> None:
    """The call may be made once the database is back: a claim whose answer was lost may have been written."""

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
    """The workflow has no claim, so both would make the call, and the second would take the mark of the first for a lost attempt."""
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


_TEXT: JsonSchema = {"type": "object", "properties": {"text": {"type": "string"}}}
_FILE: JsonSchema = {"type": "object", "properties": {"text": {"type": "string", "format": "file-path"}}}
_WAYS: dict[str, tuple[dict[str, JsonValue], dict[str, JsonValue], float]] = {
    "nothing": ({}, {}, 0.01),
    "nobody_waits": ({"mode": "async"}, {}, 0.01),
    "streams": ({"stream": True}, {}, 0.01),
    "asks": ({"listens": {"answers": ["elicitation"]}}, {}, 0.01),
    "acts": ({}, {"side_effect_scope": "local_state"}, 0.01),
    "files": ({}, {"input_schema": _FILE}, 0.01),
    "large": ({"params": {"text": "x" * MOST_BYTES}}, {}, 0.01),
    "not_ready": ({}, {}, 0.01),
    "slow": ({}, {}, 0.2),
}
"""What differs of the call, of its tool, and how long that took lately."""


@pytest.mark.parametrize("reason", _WAYS)
async def test_what_a_call_and_its_tool_are_decides_the_way(front: Front, database: Database, reason: str) -> None:
    asked, told, took_s = _WAYS[reason]
    fields: dict[str, JsonValue] = {"tool_id": "remote", "name": "R", "side_effect_scope": "none", "input_schema": _TEXT, **told}
    await tool_registry(database).register(ToolManifest.model_validate(fields), (McpSource(tool_name="t", url="http://far.example/mcp"),))
    front.durations.note("remote", "1.0.0", took_s)
    front.not_ready |= {"remote"} if reason == "not_ready" else set()
    answer = await front.door.make(ToolCall.model_validate({"tool_id": "remote", **asked}), ID, is_new=True)
    assert (answer == Elsewhere(None), front.stage.made) == ((False, [ID]) if reason == "nothing" else (True, []))


@pytest.mark.promise("accepted-means-ended")
async def test_a_claim_of_which_nobody_knows_whether_it_was_committed_stands_and_is_handed_on(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.upkeep.hosts.doors._FORGOTTEN", timedelta(0))
    stage = Stage()
    async with deaf_to_one_commit(postgres_url) as url, closing(Database(postgres_url)) as heard, closing(Database(url)) as database:
        await tool_registry(heard).register(ToolManifest(tool_id="pure", name="Pure", side_effect_scope=SideEffectScope.NONE), (SOURCE,))
        claims, doors = ClaimTable(database), DoorTable(database, 60.0)
        tables = DoorTables(claims, CallTable(database), tool_registry(database), UsualDurations(), memberships_of(database))
        door = Door("own", stage.lane, lambda _: True, tables, LaneMode.HARMLESS)
        assert await door.make(call(), ID, is_new=False) == Elsewhere(ID)
        held = await claims.get(ID)
        assert held is not None
        assert (held.owner, stage.made) == ("own", [])
        keeper = DoorKeeper("own", None, doors, claims, NoTemporal(), stage.lane, NoTemporal().adopt)
        await keeper.open()
        await keeper.look()
        await asyncio.wait_for(stage.has_moved.wait(), 10)
        assert (stage.moved, stage.made) == ([ID], [])
        await stage.lane.close()


@pytest.mark.promise("accepted-means-ended")
async def test_a_claim_of_an_unknown_commit_goes_with_the_refusal_of_its_call_but_not_from_who_came_since(front: Front) -> None:
    front.claims.is_deaf = True
    unknown = await front.door.make(call(), ID, is_new=False)
    assert isinstance(unknown, Elsewhere)
    assert await front.claims.get(ID) is not None
    await front.door.withdraw(ID, unknown.claimed_at)
    assert await front.claims.get(ID) is None
    unknown = await front.door.make(call(), ID, is_new=False)
    assert isinstance(unknown, Elsewhere)
    front.claims.is_deaf, front.stage.away = False, 1_000_000
    with pytest.raises(LanePendingError):
        await front.door.make(call(), ID, is_new=False)
    await front.door.withdraw(ID, unknown.claimed_at)
    assert await front.claims.get(ID) is not None


@pytest.mark.promise("accepted-means-ended")
async def test_who_asks_while_a_claim_is_withdrawn_is_accepted_after_it(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    front.claims.is_deaf = True
    unknown = await front.door.make(call(), ID, is_new=False)
    assert isinstance(unknown, Elsewhere)
    front.claims.is_deaf, front.stage.away = False, 1_000_000
    withdraw, is_asked, goes_on = front.claims.withdraw, asyncio.Event(), asyncio.Event()

    async def slow(call_id: str, owner: str, claimed_at: str | None = None) -> None:
        if owner == "own":
            is_asked.set()
            await goes_on.wait()
        await withdraw(call_id, owner, claimed_at)

    monkeypatch.setattr(front.claims, "withdraw", slow)
    withdrawn = asyncio.create_task(front.door.withdraw(ID, unknown.claimed_at))
    await is_asked.wait()
    since = asyncio.create_task(front.door.make(call(), ID, is_new=False))
    await asyncio.wait((since,), timeout=0.5)  # it could have the same claim by then
    goes_on.set()
    await withdrawn
    with pytest.raises(LanePendingError):
        await since
    assert await front.claims.get(ID) is not None


class NoTemporal:
    """Must not be called."""

    async def adopt(self, claim: Claim) -> None:
        raise AssertionError(claim)

    async def end_lane(self, of: str) -> None:
        raise AssertionError(of)

    async def is_over(self, call_id: str) -> bool | None:
        raise AssertionError(call_id)


@asynccontextmanager
async def closing(database: Database) -> AsyncGenerator[Database]:
    yield database
    await database.close()
