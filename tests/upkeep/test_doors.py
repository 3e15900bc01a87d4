"""The upkeep of a front door: its lease, and the accepted calls of lost doors."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime, timedelta
from types import SimpleNamespace

import pytest
from sqlalchemy import select, text, update
from structlog.testing import capture_logs

from engine.calling.lane import Flight
from engine.store.calls import CallTable, OvertakenError
from engine.store.claims import WORKFLOW, Claim, ClaimTable
from engine.store.clock import database_time, timestamp
from engine.store.database import Database
from engine.store.doors import DoorTable
from engine.store.tables import doors as doors_of
from engine.upkeep.hosts.doors import DoorKeeper, Successor, held_door, seen_doors
from tests.store.test_calls import RECORD, RESULT
from toolagent.contracts.calls import ToolCall
from toolagent.contracts.lanes import LaneFigures
from toolagent_service.calls.lanes import LaneUnreachableError

CALL = ToolCall(tool_id="echo", params={"message": "hello"})


class Round:
    """A door, and what its keeper has done."""

    def __init__(self, name: str, host: str | None, doors: DoorTable, claims: ClaimTable) -> None:
        self.adopted: list[str] = []
        self.closed: list[str] = []
        self.handed_on: list[str] = []
        self.over = dict[str, bool | None]()
        self.is_temporal_away = False
        self.not_taken = set[str]()
        self.asked: list[str] = []
        self.is_asked, self.may_say, self.has_adopted = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.may_say.set()
        self.keeper = DoorKeeper(name, host, doors, claims, self, self, self.adopt)

    async def adopt(self, claim: Claim) -> None:
        assert claim.call == CALL
        if claim.call_id in self.not_taken:
            raise LaneUnreachableError("Temporal does not take it now.")
        self.adopted.append(claim.call_id)
        self.has_adopted.set()

    async def end_lane(self, of: str) -> None:
        if self.is_temporal_away:
            raise LaneUnreachableError("Temporal is away.")
        self.closed.append(of)

    @property
    def figures(self) -> LaneFigures:
        return LaneFigures(calls=3)

    def hand_on(self, flight: Flight) -> None:
        self.handed_on.append(flight.call_id)

    async def is_over(self, call_id: str) -> bool | None:
        self.asked.append(call_id)
        self.is_asked.set()
        await self.may_say.wait()
        return self.over.get(call_id)


@pytest.mark.promise("accepted-means-ended")
async def test_calls_of_a_door_that_is_gone_are_adopted_and_those_of_one_that_lives_are_not(database: Database) -> None:
    doors, claims = DoorTable(database, 60.0), ClaimTable(database)
    living, own = Round("living", None, doors, claims), Round("own", None, doors, claims)
    await living.keeper.open()
    await own.keeper.open()
    await claims.take(Claim("call-11111111", "f", "gone"), CALL)
    await claims.take(Claim("call-22222222", "f", "living"), CALL)
    await own.keeper.look()
    assert (own.adopted, own.closed) == (["call-11111111"], [])
    await living.keeper.leave()
    await own.keeper.look()
    assert own.adopted == ["call-11111111", "call-11111111", "call-22222222"]


@pytest.mark.parametrize(
    ("written", "calls"), [('{"calls": 3, "of_tomorrow": {}}', 3), ('{"waiting": 1}', 0), ('{"calls": "many"}', 0), ("no JSON", 0)]
)
async def test_a_door_of_another_version_is_alive_whatever_figures_it_has(database: Database, written: str, calls: int) -> None:
    doors = DoorTable(database, 60.0)
    await doors.beat("other", None, LaneFigures())
    async with database.write() as connection:
        await connection.execute(update(doors_of).values(figures=written))
    assert [(lane.door, lane.figures.calls) for lane in await doors.alive()] == [("other", calls)]


async def test_a_claim_that_cannot_be_read_keeps_no_other_from_being_adopted(database: Database) -> None:
    doors, claims = DoorTable(database, 60.0), ClaimTable(database)
    own = Round("own", None, doors, claims)
    for call_id in ("call-11111111", "call-22222222"):
        await claims.take(Claim(call_id, "f", "gone"), CALL)
    async with database.write() as connection:
        await connection.execute(text("UPDATE claims SET call = '{}' WHERE call_id = 'call-11111111'"))
    await own.keeper.look()
    assert own.adopted == ["call-22222222"]
    assert await claims.get("call-11111111") is not None


@pytest.mark.promise("accepted-means-ended")
async def test_many_claims_that_cannot_be_read_keep_no_other_from_being_adopted_in_the_same_round(database: Database) -> None:
    own, claims = Round("own", None, DoorTable(database, 60.0), ClaimTable(database)), ClaimTable(database)
    unreadable, readable = [f"call-{number:08}" for number in range(65)], [f"call-{number:08}" for number in range(65, 200)]
    await asyncio.gather(*(claims.take(Claim(call_id, "f", "gone"), CALL) for call_id in unreadable))
    async with database.write() as connection:
        await connection.execute(text("UPDATE claims SET call = '{}'"))
    await asyncio.gather(*(claims.take(Claim(call_id, "f", "gone"), CALL) for call_id in readable))
    with capture_logs() as logs:
        await own.keeper.look()
        await own.keeper.look()
    assert own.adopted == [*readable, *readable]
    assert [line["call_id"] for line in logs if line["event"] == "claim_unreadable"] == unreadable


@pytest.mark.promise("accepted-means-ended")
async def test_calls_that_temporal_does_not_take_keep_no_other_from_being_adopted_and_are_tried_again(database: Database) -> None:
    own, claims = Round("own", None, DoorTable(database, 60.0), ClaimTable(database)), ClaimTable(database)
    first, second, third = calls = [f"call-{number:08}" for number in range(3)]
    await asyncio.gather(*(claims.take(Claim(call_id, "f", "gone"), CALL) for call_id in calls))
    own.not_taken = {first, second}
    with capture_logs() as logs:
        for _ in range(6):
            await own.keeper.look()
        assert own.adopted == [third, third]
        own.not_taken.clear()
        await own.keeper.look()
    assert own.adopted == [third, third, *calls]
    assert [line["call_id"] for line in logs if line["event"] == "call_adopted"] == calls


class Clock:
    """The clock of this process, and that of the database for the door `other`, which was last heard of at the begin of the test."""

    def __init__(self, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        self._database, self._now = database, 1_000.0
        monkeypatch.setattr("engine.store.doors.time", SimpleNamespace(monotonic=lambda: self._now))

    def pass_by(self, seconds: float) -> None:
        self._now += seconds

    async def go_on(self, seconds: float) -> None:
        self.pass_by(seconds)
        async with self._database.write() as connection:
            before = database_time(timedelta(seconds=1_000.0 - self._now))
            await connection.execute(update(doors_of).where(doors_of.c.door == "other").values(seen_at=before))


@pytest.fixture
def clock(database: Database, monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(database, monkeypatch)


async def test_a_process_judges_nobody_for_the_time_in_which_it_saw_nothing(database: Database, clock: Clock) -> None:
    seen, blind = DoorTable(database, 60.0), DoorTable(database, 60.0)
    for table in (seen, blind):
        await table.beat("own", None, LaneFigures())
    await DoorTable(database, 60.0).beat("other", None, LaneFigures())
    for _ in range(4):
        await clock.go_on(20)
        await seen.beat("own", None, LaneFigures())
    assert [lane.door for lane in await seen.alive()] == ["own"]
    assert [lane.door for lane in await blind.alive()] == ["other", "own"]
    await blind.beat("own", None, LaneFigures())
    assert [lane.door for lane in await blind.alive()] == ["other", "own"]
    assert await blind.gone(None, "own") == ()


async def test_doors_are_judged_after_the_wait_for_a_connection(database: Database, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """In that wait no door could renew its lease: the database was away, or this process was stopped."""
    await DoorTable(database, 60.0).beat("other", None, LaneFigures())
    await clock.go_on(100)
    doors, used = DoorTable(database, 60.0), database._used  # pyright: ignore[reportPrivateUsage] - a connection is waited for in it
    await doors.beat("own", None, LaneFigures())
    assert await doors.gone(None, "own") == ("other",)

    @contextmanager
    def waiting() -> Generator[None]:
        clock.pass_by(100)
        with used():
            yield

    monkeypatch.setattr(database, "_used", waiting)
    assert await doors.gone(None, "own") == ()
    assert [lane.door for lane in await doors.alive()] == ["other", "own"]


class Looking(DoorTable):
    looked = asyncio.Event()

    async def look(self) -> None:
        await super().look()
        self.looked.set()


async def test_a_process_that_is_no_door_judges_nobody_for_that_time_either(database: Database, clock: Clock) -> None:
    host = Looking(database, 60.0)
    await host.look()
    await DoorTable(database, 60.0).beat("other", None, LaneFigures())
    await clock.go_on(61)
    assert [lane.door for lane in await host.alive()] == ["other"]
    host.looked.clear()
    async with asyncio.timeout(30), seen_doors(host, 0.01):
        await host.looked.wait()
        assert [lane.door for lane in await host.alive()] == ["other"]
        for _ in range(3):
            await clock.go_on(25)
            host.looked.clear()
            await host.looked.wait()
        assert await host.alive() == ()


async def test_an_earlier_life_of_the_same_host_is_gone_at_once_and_another_door_when_its_lease_is_over(database: Database) -> None:
    claims = ClaimTable(database)
    long, short = DoorTable(database, 60.0), DoorTable(database, 0.0)
    await long.beat("before", "h1", LaneFigures())
    await long.beat("other", "h2", LaneFigures())
    own = Round("own", "h1", long, claims)
    await own.keeper.open()
    assert own.closed == ["before"]
    late = Round("own", "h1", short, claims)
    await late.keeper.look()
    assert late.closed == ["other"]


async def test_a_call_that_has_ended_gets_no_workflow_for_a_claim_that_came_late(database: Database) -> None:
    own, claims, calls = Round("own", None, DoorTable(database, 60.0), ClaimTable(database)), ClaimTable(database), CallTable(database)
    await calls.settle(RECORD, RESULT, ())
    assert await calls.mark_sent(RECORD, claim=Claim(RECORD.call_id, "f", "gone", call=CALL)) == 0
    assert await claims.get(RECORD.call_id) is not None
    await own.keeper.look()
    assert (own.adopted, await claims.get(RECORD.call_id)) == ([], None)


@pytest.mark.promise("nothing-is-left-over")
async def test_a_door_that_is_gone_is_known_until_its_lane_is_ended_and_calls_are_adopted_meanwhile(database: Database) -> None:
    claims = ClaimTable(database)
    for gone in ("before", "other"):
        await DoorTable(database, 60.0).beat(gone, None, LaneFigures())
    await claims.take(Claim("call-11111111", "f", "other"), CALL)
    own = Round("own", None, DoorTable(database, 0.0), claims)
    own.is_temporal_away = True
    await own.keeper.look()
    assert (own.closed, own.adopted) == ([], ["call-11111111"])
    own.is_temporal_away = False
    await own.keeper.look()
    assert own.closed == ["before", "other"]
    await own.keeper.look()
    assert own.closed == ["before", "other"]


@pytest.mark.promise("nothing-is-left-over")
@pytest.mark.parametrize("is_open", [True, False])
async def test_a_door_whose_lane_could_not_be_closed_leaves_its_row_for_who_ends_that_lane(database: Database, *, is_open: bool) -> None:
    doors = DoorTable(database, 60.0)
    own = Round("own", None, doors, ClaimTable(database))
    async with held_door(own.keeper, 60.0, lambda: is_open):
        assert [lane.door for lane in await doors.alive()] == ["own"]
    assert [lane.door for lane in await doors.alive()] == (["own"] if is_open else [])


@pytest.mark.promise("accepted-means-ended", "never-twice")
@pytest.mark.parametrize("hours", [-1, 1])
async def test_when_the_clock_of_the_database_jumps_calls_of_a_living_door_have_one_owner(database: Database, hours: int) -> None:
    """Ahead of time, the door looks dead until it renews its lease: it can neither send nor settle calls that are taken over meanwhile."""
    doors, claims, calls = DoorTable(database, 60.0), ClaimTable(database), CallTable(database)
    living, own = Round("living", None, doors, claims), Round("own", None, DoorTable(database, 60.0), claims)
    await living.keeper.open()
    await own.keeper.open()
    ours = Claim(RECORD.call_id, "f", "living")
    await claims.take(ours, CALL)
    await _let_the_clock_jump(database, timedelta(hours=hours))
    await own.keeper.look()
    if hours > 0:
        assert own.adopted == [RECORD.call_id]
        assert await claims.take_over(ours, WORKFLOW)
        assert [await calls.mark_sent(RECORD, claim=ours), await calls.mark_sent(RECORD)] == [0, 1]
        with pytest.raises(OvertakenError):
            await calls.settle(RECORD, RESULT, (), ours)
    else:
        assert own.adopted == []
        assert await calls.mark_sent(RECORD, claim=ours) == 1
        assert await calls.settle(RECORD, RESULT, (), ours) == RESULT
    await living.keeper.beat()
    await claims.take(Claim("call-22222222", "f", "living"), CALL)
    await own.keeper.look()
    assert "call-22222222" not in own.adopted


async def _let_the_clock_jump(database: Database, by: timedelta) -> None:
    """Make everything that was written before this much older."""
    async with database.write() as connection:
        for door, seen_at in (await connection.execute(select(doors_of.c.door, doors_of.c.seen_at))).all():
            jumped = timestamp(datetime.fromisoformat(seen_at) - by)
            await connection.execute(update(doors_of).where(doors_of.c.door == door).values(seen_at=jumped))


@pytest.mark.promise("accepted-means-ended")
async def test_calls_whose_claims_are_old_are_handed_on_where_the_lane_does_not_know_them(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.upkeep.hosts.doors._FORGOTTEN", timedelta(0))
    doors, claims = DoorTable(database, 60.0), ClaimTable(database)
    own = Round("own", None, doors, claims)
    await own.keeper.open()
    await claims.take(Claim("call-11111111", "f", "own"), CALL)
    await claims.take(Claim("call-22222222", "f", "other"), CALL)
    await own.keeper.look()
    assert own.handed_on == ["call-11111111"]


@pytest.mark.promise("never-twice")
async def test_the_claim_of_a_workflow_that_was_ended_from_outside_goes_and_that_of_a_call_that_another_one_makes_goes_late(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    doors, claims = DoorTable(database, 60.0), ClaimTable(database)
    states = {"call-11111111": True, "call-22222222": False, "call-33333333": None}
    for call_id in states:
        await claims.take(Claim(call_id, "f", WORKFLOW), CALL)

    async def kept() -> list[str]:
        keeping = Round("own", None, doors, claims)
        keeping.over.update(states)
        await keeping.keeper.open()
        await keeping.keeper.forget()
        return [call_id for call_id in states if await claims.get(call_id) is not None]

    assert await kept() == [*states]
    monkeypatch.setattr("engine.upkeep.hosts.doors._OLD", timedelta(0))
    assert await kept() == ["call-22222222", "call-33333333"]
    monkeypatch.setattr("engine.upkeep.hosts.doors._OLDEST", timedelta(0))
    assert await kept() == ["call-22222222"]


@pytest.mark.promise("accepted-means-ended")
async def test_calls_are_adopted_while_temporal_is_asked_after_old_ones(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.upkeep.hosts.doors._OLD", timedelta(0))
    own, claims = Round("own", None, DoorTable(database, 60.0), ClaimTable(database)), ClaimTable(database)
    await claims.take(Claim("call-11111111", "f", WORKFLOW), CALL)
    own.may_say.clear()
    async with asyncio.timeout(10), held_door(own.keeper, 0.05, lambda: False):
        await own.is_asked.wait()
        await claims.take(Claim("call-22222222", "f", "gone"), CALL)
        await own.has_adopted.wait()
    assert own.adopted[0] == "call-22222222"


async def test_one_living_door_asks_temporal_after_old_calls(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.upkeep.hosts.doors._OLD", timedelta(0))
    doors, claims = DoorTable(database, 60.0), ClaimTable(database)
    await claims.take(Claim("call-11111111", "f", WORKFLOW), CALL)
    first, second = Round("1", None, doors, claims), Round("2", None, doors, claims)
    none = Successor(doors, claims, second, second.adopt)
    await first.keeper.open()
    await second.keeper.open()
    for keeper in (first.keeper, second.keeper, none):
        await keeper.forget()
    assert (first.asked, second.asked) == (["call-11111111"], [])
    await first.keeper.leave()
    await second.keeper.forget()
    await second.keeper.leave()
    await none.forget()
    assert second.asked == ["call-11111111"] * 2
