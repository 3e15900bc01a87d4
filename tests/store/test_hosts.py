"""The table of hosts: draining."""

from engine.store.database import Database
from engine.store.hosts import HostClaim, HostTable, HostWork
from toolagent_service.calls.dispatch import HostStanding

_CLAIM = HostClaim("host-a", "first", "here", {"default": 2})


async def test_a_drain_outlives_the_process_and_is_told_with_each_heartbeat(database: Database) -> None:
    hosts = HostTable(database, 3600)
    assert (await hosts.claim(_CLAIM), await hosts.beat(_CLAIM)) == (None, None)
    assert await hosts.drain("host-a")
    mark = await hosts.beat(_CLAIM)
    assert mark is not None
    assert await hosts.drain("host-a"), "again, it stays as it is"
    assert await hosts.beat(_CLAIM) == mark
    assert await hosts.claim(HostClaim("host-a", "after kill -9", "here", {})) == mark
    await hosts.release(HostClaim("host-a", "after kill -9", "here", {}))
    assert await hosts.claim(_CLAIM) == mark
    assert await hosts.undrain("host-a")
    assert await hosts.beat(_CLAIM) is None
    assert (await hosts.drain("nobody"), await hosts.undrain("nobody"), await hosts.find("nobody")) == (False, False, None)


async def test_a_host_says_what_it_does_and_when_it_is_through(database: Database) -> None:
    hosts = HostTable(database, 3600)
    await hosts.claim(_CLAIM)
    await hosts.drain("host-a")
    mark = await hosts.beat(_CLAIM, HostWork({"default": 1}))
    found = await hosts.find("host-a")
    assert found is not None
    assert (found[0].calls, found[0].draining_since is not None, found[1]) == ({"default": 1}, True, False)
    assert await hosts.standings() == {"host-a": HostStanding({"default": 2}, {"default": 1}, drains=True)}
    await hosts.beat(_CLAIM, HostWork(drained_of=mark))
    assert [through for _, through in filter(None, [await hosts.find("host-a")])] == [True]
    await hosts.undrain("host-a")
    await hosts.drain("host-a")
    found = await hosts.find("host-a")
    assert found is not None
    assert not found[1], "it is another drain"


async def test_one_that_stopped_is_not_alive_but_can_be_told_for_its_next_life(database: Database) -> None:
    hosts = HostTable(database, 3600)
    await hosts.claim(_CLAIM)
    await hosts.release(_CLAIM)
    assert await hosts.drain("host-a")
    found = await hosts.find("host-a")
    assert found is not None
    assert (found[0].is_alive, found[0].calls, await hosts.standings(), await hosts.list_all()) == (False, {}, {}, ())
