"""The leases of hosts, by the clock of the database, on both kinds of it."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace
from datetime import timedelta

import pytest
import pytest_asyncio
from sqlalchemy import update

from engine.calling.intake import Intake
from engine.store.clock import database_time
from engine.store.database import Database
from engine.store.hosts import HostClaim, HostTable, HostTakenError
from engine.store.routes import RouteTable
from engine.store.tables import hosts as hosts_of
from engine.upkeep.hosts.lease import NotTheHostError, held_host
from toolagent.contracts.routes import RunState, ToolRoute

_LEASE_S = 60.0
_FIRST = HostClaim("host-a", "first", "here", {"default": 2})
_SECOND = HostClaim("host-a", "second", "there", {})


@pytest_asyncio.fixture
async def base(database_url: str) -> AsyncGenerator[Database]:
    base = Database(database_url)
    yield base
    await base.close()


async def _silent_for_its_lease(base: Database) -> None:
    async with base.write() as connection:
        before = database_time(timedelta(seconds=-_LEASE_S - 1))
        await connection.execute(update(hosts_of).values(seen_at=before))


async def _until(is_true: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while True:
            if await is_true():
                return
            await asyncio.sleep(0.05)


async def test_a_host_is_alive_until_it_was_not_heard_of_for_the_lease(base: Database) -> None:
    hosts = HostTable(base, _LEASE_S)
    await hosts.claim(_FIRST)
    [seen] = await hosts.list_all()
    assert (seen.host, seen.instance, seen.origin, seen.buckets, seen.is_alive) == ("host-a", "first", "here", {"default": 2}, True)
    await _silent_for_its_lease(base)
    assert [host.is_alive for host in await hosts.list_all()] == [False]
    await hosts.beat(_FIRST)
    assert await hosts.list_alive() == {"host-a": frozenset(_FIRST.buckets)}


async def test_another_place_may_have_the_id_only_when_the_host_is_dead_and_then_the_first_one_is_told(base: Database) -> None:
    hosts = HostTable(base, _LEASE_S)
    await hosts.claim(_FIRST)
    with pytest.raises(HostTakenError) as refusal:
        await hosts.claim(_SECOND)
    assert refusal.value.holder.origin == "here"
    await _silent_for_its_lease(base)
    await hosts.claim(_SECOND)
    with pytest.raises(HostTakenError):
        await hosts.beat(_FIRST)


async def test_the_successor_on_the_same_state_directory_takes_over_at_once(base: Database) -> None:
    hosts = HostTable(base, 3600)
    await hosts.claim(_FIRST)
    await hosts.claim(replace(_FIRST, instance="after the restart"))
    assert [host.instance for host in await hosts.list_all()] == ["after the restart"]


async def test_only_the_holder_gives_the_id_back(base: Database) -> None:
    hosts, routes = HostTable(base, 3600), RouteTable(base, 3600)
    await hosts.claim(_FIRST)
    await routes.save(ToolRoute(tool_id="echo", state=RunState.STOPPED, host="host-a"), "1.0.0")
    await hosts.release(_SECOND)
    assert (len(await hosts.list_all()), len(await routes.list_all())) == (1, 1)
    await hosts.release(_FIRST)
    assert (await hosts.list_all(), await routes.list_all()) == ((), ())


async def test_of_many_that_want_one_id_at_once_one_gets_it(base: Database) -> None:
    hosts = HostTable(base, 3600)
    claims = [HostClaim("host-a", f"instance {number}", f"place {number}", {}) for number in range(8)]
    outcomes = await asyncio.gather(*map(hosts.claim, claims), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes if outcome is not None] == [HostTakenError] * 7


async def test_what_runs_on_a_dead_host_is_shown_as_stopped(base: Database) -> None:
    hosts, routes = HostTable(base, _LEASE_S), RouteTable(base, _LEASE_S)
    await hosts.claim(_FIRST)
    await routes.save(ToolRoute(tool_id="echo", state=RunState.RUNNING, host="host-a", pid=7, endpoint="http://127.0.0.1:1"), "1.0.0")
    assert [route.state for route in await routes.list_all()] == [RunState.RUNNING]
    await _silent_for_its_lease(base)
    route = await routes.get("echo")
    assert route is not None
    assert (route.state, route.host, route.pid, route.endpoint) == (RunState.STOPPED, "host-a", None, None)
    assert route.last_error is not None


async def test_an_id_that_is_alive_elsewhere_is_refused_with_the_place_and_the_setting(base: Database) -> None:
    hosts = HostTable(base, 3600)
    await hosts.claim(_FIRST)
    with pytest.raises(NotTheHostError, match=r"here.*TOOL_AGENT_HOST_ID"):
        async with held_host(hosts, _SECOND, 0.1, 0.5, Intake()):
            pass
    assert [host.instance for host in await hosts.list_all()] == ["first"]


async def test_a_host_says_that_it_is_alive_until_it_ends_and_is_gone_then(base: Database) -> None:
    hosts = HostTable(base, _LEASE_S)
    async with held_host(hosts, _FIRST, 0.1, 10.0, Intake()):
        [before] = await hosts.list_all()

        async def is_newer() -> bool:
            return (await hosts.list_all())[0].seen_at > before.seen_at

        await _until(is_newer)
    assert await hosts.list_all() == ()


async def test_a_host_whose_id_is_taken_from_it_learns_of_it(base: Database) -> None:
    hosts = HostTable(base, _LEASE_S)
    async with held_host(hosts, _FIRST, 0.1, 10.0, Intake()) as lease:
        await hosts.claim(HostClaim("host-a", "thief", _FIRST.origin, {}))
        async with asyncio.timeout(60):
            with pytest.raises(NotTheHostError, match="TOOL_AGENT_HOST_ID"):
                await lease.lost()
    assert [host.instance for host in await hosts.list_all()] == ["thief"]
