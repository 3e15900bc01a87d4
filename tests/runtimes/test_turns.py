"""A round that takes long: it goes on alone, and nobody waits for it."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from temporalio.testing import ActivityEnvironment

from activities.maintain import Maintain
from engine.runtimes.running.supervisor import Supervisor
from engine.store.database import Database
from engine.store.hosts import HostTable
from engine.upkeep.tools.maintenance import HostMaintenance, ServiceMaintenance, begun_maintenance
from tests.runtimes.conftest import eventually
from tests.runtimes.test_maintenance import Host
from toolagent.core.failures import StoreUnavailableError
from toolagent_service.contracts.maintenance import HostRound, HostTurn

_WELL = HostRound(host="here")


@dataclass
class Sessions:
    """Says which tools sessions hold, once it `may` answer."""

    may: asyncio.Event = field(default_factory=asyncio.Event)
    error: Exception | None = None
    asked: int = 0

    async def __call__(self) -> frozenset[str]:
        self.asked += 1
        await self.may.wait()
        if self.error is not None:
            raise self.error
        return frozenset()


@pytest.fixture
def sessions() -> Sessions:
    return Sessions()


@pytest.fixture
def maintenance(supervisor: Supervisor, database: Database, state: Path, sessions: Sessions) -> HostMaintenance:
    return Host(supervisor, database, state).maintenance(sessions=sessions)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.upkeep.tools.maintenance._TURN_S", 0.2)


async def test_a_turn_does_not_wait_for_a_long_round_and_begins_no_other(maintenance: HostMaintenance, sessions: Sessions) -> None:
    async with asyncio.timeout(30):
        turns = [await maintenance.turn() for _ in range(3)]
        with capture_logs() as logged:
            sessions.may.set()
            await eventually(lambda: bool(logged))
        assert (["goes on" in one.failed for one in turns], sessions.asked) == ([True] * 3, 1)
        assert [(line["event"], line["host"]) for line in logged] == [("long_round_ended", "here")]
        assert (await maintenance.turn(), sessions.asked) == (_WELL, 2)


async def test_temporal_is_told_without_waiting_for_a_long_round(maintenance: HostMaintenance, database: Database) -> None:
    activities = Maintain(maintenance, ServiceMaintenance(HostTable(database, 30.0)))
    async with asyncio.timeout(30):
        told = await ActivityEnvironment().run(activities.maintain_host, HostTurn(host="here"))
    assert "goes on" in told.failed


async def test_a_stuck_round_is_ended_and_the_next_turn_begins_another(
    maintenance: HostMaintenance, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.upkeep.tools.maintenance._TURN_S", 30.0)
    monkeypatch.setattr("engine.upkeep.tools.maintenance._ROUND_S", 0.1)
    async with asyncio.timeout(30):
        assert "was ended" in (await maintenance.turn()).failed
        sessions.may.set()
        monkeypatch.setattr("engine.upkeep.tools.maintenance._ROUND_S", 30.0)
        assert (await maintenance.turn(), sessions.asked) == (_WELL, 2)


async def test_a_round_that_fails_raises_in_its_turn_and_is_logged_after_it(maintenance: HostMaintenance, sessions: Sessions) -> None:
    sessions.error = StoreUnavailableError("The database is away.")
    async with asyncio.timeout(30):
        assert "goes on" in (await maintenance.turn()).failed
        with capture_logs() as logged:
            sessions.may.set()
            await eventually(lambda: bool(logged))
        assert [line["event"] for line in logged] == ["round_failed"]
        with pytest.raises(StoreUnavailableError):
            await maintenance.turn()


async def test_a_host_that_stops_ends_its_round_and_begins_no_other(
    maintenance: HostMaintenance, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.upkeep.tools.maintenance._TURN_S", 30.0)
    async with asyncio.timeout(20):
        turn = asyncio.create_task(maintenance.turn())
        await eventually(lambda: sessions.asked == 1)
        await maintenance.close()
        ended = HostRound(host="here", failed="The host stops.")
        assert (await turn, await maintenance.turn(), sessions.asked) == (ended, ended, 1)


async def test_a_first_round_that_is_stuck_keeps_later_ones_waiting_no_longer_than_its_limit(
    maintenance: HostMaintenance, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.upkeep.tools.maintenance._ROUND_S", 0.5)
    async with asyncio.timeout(30), begun_maintenance(maintenance):
        await eventually(lambda: sessions.asked == 1)
        assert "goes on" in (await maintenance.turn()).failed
        await eventually(lambda: maintenance._under_way is None)  # pyright: ignore[reportPrivateUsage] - it has no result to wait for
        sessions.may.set()
        assert (await maintenance.turn(), sessions.asked) == (_WELL, 2)


async def test_a_timeout_of_its_parts_is_not_taken_for_the_limit_of_a_round(maintenance: HostMaintenance, sessions: Sessions) -> None:
    sessions.error = TimeoutError("The engine does not answer.")
    sessions.may.set()
    with pytest.raises(TimeoutError, match="engine"):
        await maintenance.turn()


async def test_a_round_that_fails_after_its_turn_was_cancelled_is_logged(maintenance: HostMaintenance, sessions: Sessions) -> None:
    sessions.error = StoreUnavailableError("The database is away.")
    async with asyncio.timeout(30):
        turn = asyncio.create_task(maintenance.turn())
        await eventually(lambda: sessions.asked == 1)
        turn.cancel()
        with capture_logs() as logged:
            sessions.may.set()
            await eventually(lambda: bool(logged))
    assert [line["event"] for line in logged] == ["round_failed"]


async def test_a_first_round_that_fails_is_logged(maintenance: HostMaintenance, sessions: Sessions) -> None:
    sessions.error = RuntimeError("broken")
    sessions.may.set()
    async with asyncio.timeout(30):
        with capture_logs() as logged:
            async with begun_maintenance(maintenance):
                await eventually(lambda: bool(logged))
    assert [line["event"] for line in logged] == ["round_failed"]
