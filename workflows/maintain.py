"""Maintenance: each host maintains its tools, then one round maintains the whole service."""

import asyncio

from pydantic import JsonValue
from temporalio import workflow
from temporalio.exceptions import ActivityError

from toolagent.client import names
from toolagent_service import step_names, stubs
from toolagent_service.contracts.maintenance import HostRound, HostTurn, MaintainAccount, MaintainRequest, ServiceRound
from workflows import options
from workflows.inputs import input_of

_LONGEST = 200


@workflow.defn(name=names.MAINTAIN)
class Maintain:
    @workflow.run
    async def run(self, given: JsonValue = None, *surplus: JsonValue) -> MaintainAccount:
        """Takes a `MaintainRequest` as plain JSON; invalid input fails at once."""
        input_of(MaintainRequest, given, surplus)
        found = await workflow.execute_local_activity(stubs.list_live_hosts, **options.list_live_hosts())
        rounds = await asyncio.gather(*map(_round_of, found))
        workflow.set_current_details("\n".join(map(_told, rounds)))
        return MaintainAccount(hosts=tuple(rounds), service=await _service_round())


async def _round_of(host: str) -> HostRound:
    """The round of one host, or why it failed."""
    turn = HostTurn(host=host)
    try:
        return await workflow.execute_activity(stubs.maintain_host, turn, **options.maintain_host(host, step_names.control_queue(host)))
    except ActivityError as error:
        return HostRound(host=host, failed=_reason(error))


async def _service_round() -> ServiceRound:
    try:
        return await workflow.execute_activity(stubs.maintain_service, **options.maintain_service())
    except ActivityError as error:
        return ServiceRound(done=(f"failed: {_reason(error)}",))


def _reason(error: ActivityError) -> str:
    return f"{error.cause or error}"[:_LONGEST]


def _told(one: HostRound) -> str:
    if one.failed:
        return f"{one.host}: {one.failed}"
    named = {"unhealthy": one.unhealthy, "stopped": one.stopped, "evicted": one.evicted, "started": one.started}
    done = (f"{what} {', '.join(tools)}" for what, tools in named.items() if tools)
    return "; ".join((f"{one.host}: {one.checked} checked", *done))
