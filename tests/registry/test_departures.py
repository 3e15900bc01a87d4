"""Tools that only a lost host's catalog had are removed."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import JsonValue
from sqlalchemy import delete, update

from engine.registry.departures import departures_of
from engine.store.catalog_files import CatalogFileTable
from engine.store.clock import database_time
from engine.store.containers import ContainerTable
from engine.store.database import Database
from engine.store.faults import FaultTable
from engine.store.groups import GroupTable
from engine.store.hosts import HostClaim, HostTable
from engine.store.routes import RouteTable
from engine.store.tables import hosts
from engine.store.tools import ToolTable
from tests.registry.importing import importer_of, write_catalog
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.routes import RunState, ToolRoute

_LEASE_S = 3600.0


def _claim(host: str) -> HostClaim:
    return HostClaim(host, f"life of {host}", f"place of {host}", {"default": 2})


async def _came_with(database: Database, folder: Path, host: str, ids: Sequence[str]) -> None:
    """A host starts with these tools, as many groups and containers, and a fault."""
    await HostTable(database, _LEASE_S).claim(_claim(host))
    tools: list[JsonValue] = [{"tool_id": one, "name": one} for one in ids]
    groups: list[JsonValue] = [{"group_id": f"group_{one}", "name": one, "tool_ids": [one]} for one in ids]
    containers: list[JsonValue] = [{"container_id": f"c_{one}", "tool_id": one, "image": "x"} for one in ids]
    sources: dict[str, JsonValue] = {one: [{"type": "remote", "remote_url": "http://127.0.0.1:1"}] for one in [*ids, f"stranger_of_{host}"]}
    write_catalog(
        folder / host,
        {
            "registry.json": {"tools": tools},
            "sources.json": {"sources": sources},
            "groups.json": {"groups": groups},
            "containers.json": {"containers": containers},
        },
    )
    await importer_of(database, folder, host).run(folder / host, ())
    await RouteTable(database).save(ToolRoute(tool_id=ids[0], state=RunState.STOPPED, host=host), "1.0.0")


async def _unheard_of(database: Database, host: str, for_: timedelta) -> None:
    async with database.write() as connection:
        await connection.execute(update(hosts).where(hosts.c.host == host).values(seen_at=database_time(-for_)))


async def _known(database: Database) -> set[str]:
    """The numbers of tools, groups, containers, catalogs, hosts with faults and hosts with routes."""
    tools = await ToolTable(database).list_ids()
    groups = [group.group_id for group in await GroupTable(database).list_all()]
    containers = [container.container_id for container in await ContainerTable(database).list_all()]
    catalogs = [f"{name}'s" for name in await CatalogFileTable(database).of_file("registry.json")]
    faults = [fault.field.rpartition(".")[2] for fault in await FaultTable(database).list_all()]
    routes = [f"route on {route.host}" for route in await RouteTable(database).list_all()]
    return {*tools, *groups, *containers, *catalogs, *faults, *routes}


def _all_of(host: str, *ids: str) -> set[str]:
    entries = {name for one in ids for name in (one, f"group_{one}", f"c_{one}")}
    return entries | {f"{host}'s", f"stranger_of_{host}", f"route on {host}"}


async def _died(database: Database, host: str) -> None:
    """Does nothing: the host is not heard of any more."""


async def _stopped(database: Database, host: str) -> None:
    await HostTable(database, _LEASE_S).release(_claim(host))


@pytest.mark.parametrize("ended", [_died, _stopped])
async def test_a_host_that_is_not_heard_of_for_a_week_takes_away_what_only_it_had(
    database: Database, tmp_path: Path, ended: object
) -> None:
    await _came_with(database, tmp_path, "old", ["both", "gone"])
    await ToolTable(database).put(ToolEntry(manifest=ToolManifest(tool_id="by_hand", name="x")), "registered")
    await (_stopped if ended is _stopped else _died)(database, "old")
    await _came_with(database, tmp_path, "new", ["both"])
    before = await _known(database)
    assert before >= _all_of("new", "both") | {"gone", "group_gone", "c_gone", "old's", "by_hand"}
    await _unheard_of(database, "old", timedelta(days=6))
    assert await departures_of(database).forget() == ()
    assert await _known(database) == before
    await _unheard_of(database, "old", timedelta(days=8))
    assert await departures_of(database).forget() == ("old",)
    assert await _known(database) == _all_of("new", "both") | {"by_hand"}
    assert await departures_of(database).forget() == ()


async def test_the_last_catalog_stays_since_hosts_without_one_live_on_it(database: Database, tmp_path: Path) -> None:
    await _came_with(database, tmp_path, "old", ["a"])
    await HostTable(database, _LEASE_S).claim(_claim("without"))
    await HostTable(database, _LEASE_S).claim(_claim("dead"))
    await _unheard_of(database, "old", timedelta(days=30))
    await _unheard_of(database, "dead", timedelta(days=30))
    assert await departures_of(database).forget() == ("dead",)
    assert await _known(database) == _all_of("old", "a")


async def test_a_catalog_whose_host_nobody_knows_counts_from_now(database: Database, tmp_path: Path) -> None:
    await _came_with(database, tmp_path, "old", ["a"])
    await _came_with(database, tmp_path, "new", ["b"])
    async with database.write() as connection:
        await connection.execute(delete(hosts).where(hosts.c.host == "old"))
    assert await departures_of(database).forget() == ()
    assert "a" in await _known(database)
    assert [host.host for host in await HostTable(database, _LEASE_S).list_all()] == ["new"]
    await _unheard_of(database, "old", timedelta(days=8))
    assert await departures_of(database).forget() == ("old",)
    assert await _known(database) == _all_of("new", "b")


async def test_a_host_that_stopped_is_shown_no_more_and_anybody_may_have_its_id(database: Database) -> None:
    table = HostTable(database, _LEASE_S)
    await table.claim(_claim("a"))
    await table.release(_claim("a"))
    assert (await table.list_all(), await table.list_alive()) == ((), {})
    await table.claim(HostClaim("a", "another", "elsewhere", {"default": 1}))
    assert [host.instance for host in await table.list_all()] == ["another"]


async def test_a_host_that_died_is_shown_for_a_day(database: Database) -> None:
    table = HostTable(database, 3600.0)
    await table.claim(_claim("a"))
    await _unheard_of(database, "a", timedelta(hours=23))
    assert [host.is_alive for host in await table.list_all()] == [False]
    await _unheard_of(database, "a", timedelta(hours=25))
    assert await table.list_all() == ()
