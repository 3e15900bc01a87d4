"""The paths of maintenance."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.worker import Worker

from tests.workflows.ends import Walk
from tests.workflows.stage import AnyHandle, Stage
from toolagent.client import names
from toolagent_service import step_names
from toolagent_service.contracts.maintenance import HostRound, HostTurn, MaintainRequest, ServiceRound

__all__ = ["PATHS", "served"]

BENIGN = ApplicationErrorCategory.BENIGN


@dataclass
class Hosts:
    """Living hosts; those whose name begins with `sick` fail."""

    alive: Sequence[str]

    @activity.defn(name=step_names.LIST_LIVE_HOSTS)
    async def list_live_hosts(self) -> tuple[str, ...]:
        return tuple(self.alive)

    @activity.defn(name=step_names.MAINTAIN_HOST)
    async def maintain_host(self, turn: HostTurn) -> HostRound:
        if turn.host.startswith("sick"):
            raise ApplicationError("The database is away.", category=BENIGN)
        return HostRound(host=turn.host, checked=2, stopped=("example:idle",))


@activity.defn(name=step_names.MAINTAIN_SERVICE)
async def maintain_service() -> ServiceRound:
    return ServiceRound()


def served(client: Client, *others: Callable[..., object]) -> Worker:
    """The steps that are made once for all hosts, because a process has one worker for a queue."""
    return Worker(client, task_queue=step_names.MAINTAIN_QUEUE, activities=[maintain_service, *others])


async def play_round(stage: Stage, serving: Sequence[str], others: Sequence[str] = ()) -> AnyHandle:
    hosts = Hosts([*serving, *others])
    async with stage.workers([hosts.list_live_hosts, hosts.maintain_host], *map(step_names.control_queue, serving)):
        handle = await stage.start(names.MAINTAIN, MaintainRequest(every_s=60), workflow_id=f"maintain-{stage.queue}")
        await asyncio.gather(handle.result())
    return handle


async def two_hosts(stage: Stage) -> AnyHandle:
    return await play_round(stage, ("maintained-a", "maintained-b"))


async def one_fails(stage: Stage) -> AnyHandle:
    return await play_round(stage, ("sick-a", "maintained-c"))


async def one_is_silent(stage: Stage) -> AnyHandle:
    return await play_round(stage, ("maintained-d",), ("silent-host",))


async def no_host(stage: Stage) -> AnyHandle:
    return await play_round(stage, ())


PATHS: Mapping[str, Walk] = {
    "two-hosts": Walk(two_hosts, ""),
    "one-fails": Walk(one_fails, ""),
    "one-is-silent": Walk(one_is_silent, ""),
    "no-host": Walk(no_host, ""),
}
