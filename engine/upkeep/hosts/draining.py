"""Draining a host: its unused tools stop, and operators see what is left."""

from collections.abc import Collection, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import structlog

from engine.calling.intake import Intake
from engine.calls.placements import FRESH_S
from engine.store.hosts import HostTable
from engine.store.routes import RouteTable
from engine.store.sessions import SessionUnreadableError
from engine.store.tasks import TaskTable
from engine.upkeep.hosts.residents import Residents
from engine.upkeep.rounds import repeated
from toolagent.contracts.hosts import Host, HostDrain, HostListing
from toolagent.core.failures import StoreUnavailableError

_EVERY_S = 0.5
_SETTLED_S = 2 * FRESH_S
"""Other hosts may place calls here until they read the list of hosts again."""

_NOTED_S = 2.0
"""A launch is recorded in its session at most so long after its call."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Tools(Protocol):
    """The running tools of this host: `engine.runtimes.running.supervisor.Supervisor`."""

    def tool_ids(self) -> Collection[str]: ...
    async def forget(self, tool_id: str) -> None: ...


class OwnDrain:
    """Drains the host of this process."""

    def __init__(self, host: str, intake: Intake, tools: Tools, routes: RouteTable, residents: Residents) -> None:
        self._host, self._intake, self._tools, self._routes, self._residents = host, intake, tools, routes, residents

    async def look(self) -> None:
        """Stops unused tools, and notes when nothing is left. Raises StoreUnavailableError."""
        if self._intake.is_open or self._intake.closed_s < _SETTLED_S:
            return
        try:
            kept = await self._residents.tools_on(self._host)
        except SessionUnreadableError as error:
            _log.warning("tools_kept_up", session_id=error.session_id, reason=str(error))
            self._intake.drained_of = None
            return
        for tool_id in self._tools.tool_ids():
            # Check each just before it stops: it may have been called while another one was stopped.
            if tool_id not in kept and self._intake.unused_s(tool_id) > _NOTED_S and not self._intake.is_open:
                await self._tools.forget(tool_id)
                await self._routes.forget(tool_id, self._host)
        if self._intake.calls or kept or self._tools.tool_ids():
            self._intake.drained_of = None
        elif self._intake.drained_of is None:
            self._intake.drained_of = self._intake.mark
            _log.info("host_drained", host=self._host)


def draining(drain: OwnDrain) -> AbstractAsyncContextManager[None]:
    """Drains the host whenever that is ordered, until the block ends."""
    return repeated(drain.look, _EVERY_S, "drain", passing=(StoreUnavailableError,))


class Hosts:
    """All hosts, for operators. Every method raises StoreUnavailableError."""

    def __init__(self, hosts: HostTable, routes: RouteTable, tasks: TaskTable, residents: Residents) -> None:
        self._hosts, self._routes, self._tasks, self._residents = hosts, routes, tasks, residents

    async def list_all(self) -> tuple[Host, ...]:
        """By id; dead hosts too, for a day."""
        return await self._hosts.list_all()

    async def listing(self) -> HostListing:
        """All hosts, with their numbers of tools and sessions."""
        found, tools, sessions = await self._hosts.list_all(), await self._routes.up_by_host(), await self._residents.by_host()
        return HostListing(hosts=tuple(_counted(host, tools, sessions) for host in found))

    async def drain(self, host: str) -> HostDrain | None:
        """Orders the drain. None if there is no such host, also below."""
        return await self.progress(host) if await self._hosts.drain(host) else None

    async def undrain(self, host: str) -> HostDrain | None:
        """Ends the drain."""
        return await self.progress(host) if await self._hosts.undrain(host) else None

    async def progress(self, host: str) -> HostDrain | None:
        """What is left on the host."""
        found = await self._hosts.find(host)
        if found is None:
            return None
        row = _counted(found[0], await self._routes.up_by_host(), await self._residents.by_host())
        tasks, drains = len(await self._tasks.on_host(host)), row.draining_since is not None
        return HostDrain(
            host=row,
            calls=sum(row.calls.values()),
            tools=row.tools,
            sessions=row.sessions,
            tasks=tasks,
            is_drained=drains and (found[1] or not row.is_alive) and not row.sessions and not tasks,
            warnings=await self._warnings(row) if drains else (),
        )

    async def _warnings(self, host: Host) -> tuple[str, ...]:
        dead = () if host.is_alive else ("The host is not alive. It drains when it comes back.",)
        others = [name for name, standing in (await self._hosts.standings()).items() if name != host.host and not standing.drains]
        alone = ("No other host takes calls: they are answered `unavailable` until another host is started, or the drain of one is ended.",)
        return dead if others else (*dead, *alone)


def _counted(host: Host, tools: Mapping[str, int], sessions: Mapping[str, Collection[str]]) -> Host:
    up = tools.get(host.host, 0) if host.is_alive else 0
    return host.model_copy(update={"tools": up, "sessions": len(sessions.get(host.host, ()))})
