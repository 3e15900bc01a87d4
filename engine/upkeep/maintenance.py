"""Looking after running tools, again and again."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from engine.runtimes.running.supervisor import Supervisor
from engine.store.hosts import HostTable
from toolagent_service.contracts.maintenance import HostRound, ServiceRound

Round: TypeAlias = Callable[[], Awaitable[tuple[str, ...]]]
"""Says what it has done, a few words each."""


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

    def __init__(self, hosts: HostTable, rounds: Sequence[Round] = ()) -> None:
        self._hosts, self._rounds = hosts, rounds

    async def live_hosts(self) -> tuple[str, ...]:
        """By id. Raises StoreUnavailableError."""
        return tuple(await self._hosts.list_alive())

    async def round(self) -> ServiceRound:
        """All, one after another, also when one fails; then it raises what that one raised."""
        done, failed = list[str](), list[Exception]()
        for one in self._rounds:
            try:
                done += await one()
            except Exception as error:  # noqa: BLE001 - the others are none the worse for it
                failed.append(error)
        if failed:
            raise failed[0]
        return ServiceRound(done=tuple(done))
