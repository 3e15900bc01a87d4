"""Rounds of maintenance: for the tools of this host, and once for the whole service."""

from temporalio import activity

from activities.heartbeats import beating
from engine.upkeep.tools.maintenance import HostMaintenance, ServiceMaintenance
from toolagent_service import step_names
from toolagent_service.contracts.maintenance import HostRound, HostTurn, ServiceRound


class Maintain:
    """`host` maintains the tools of this host, `service` what any host may do for all."""

    def __init__(self, host: HostMaintenance, service: ServiceMaintenance) -> None:
        self._host, self._service = host, service

    @activity.defn(name=step_names.LIST_LIVE_HOSTS)
    async def list_live_hosts(self) -> tuple[str, ...]:
        return await self._service.live_hosts()

    @activity.defn(name=step_names.MAINTAIN_HOST)
    async def maintain_host(self, _turn: HostTurn) -> HostRound:
        """Idempotent: each round looks at what runs at that time. A long one outlives the activity."""
        async with beating():
            return await self._host.turn()

    @activity.defn(name=step_names.MAINTAIN_SERVICE)
    async def maintain_service(self) -> ServiceRound:
        async with beating():
            return await self._service.round()
