"""Looking after running tools, again and again."""

import asyncio

from engine.runtimes.running.supervisor import Supervisor
from engine.store.hosts import HostTable
from toolagent_service.contracts.maintenance import HostRound, ServiceRound


class HostMaintenance:
    """Of the tools on one host."""

    def __init__(self, supervisor: Supervisor, host: str) -> None:
        self._supervisor, self._host = supervisor, host
        self._turn = asyncio.Lock()

    async def round(self) -> HostRound:
        """Once. Rounds that come meanwhile wait. Raises StoreUnavailableError."""
        async with self._turn:
            return HostRound(host=self._host, checked=len(self._supervisor.tool_ids()))


class ServiceMaintenance:
    """What any host may do for all of them."""

    def __init__(self, hosts: HostTable) -> None:
        self._hosts = hosts

    async def live_hosts(self) -> tuple[str, ...]:
        """By id. Raises StoreUnavailableError."""
        return tuple(await self._hosts.list_alive())

    async def round(self) -> ServiceRound:
        return ServiceRound()
