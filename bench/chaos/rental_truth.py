"""What is true of rented servers afterwards, by the ledger of who rents them out."""

import asyncio
import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import pairwise

import httpx
from pydantic import BaseModel, TypeAdapter
from temporalio.client import Client

from bench.chaos.rentals import PATH, PlannedSession
from toolagent.client import names
from toolagent.contracts.http import SessionListing
from toolagent.testing.servers.runcomfy_ledger import Fault
from toolagent.testing.servers.runcomfy_server import RunComfyServer

_END_S = 300.0
_PAUSE_S = 1.0
_FAULT_EVERY_S = 1.5
_FAULTS = [
    *(Fault(kind="500", at=at) for at in ("launch", "status", "stop", "list", "prompt", "history")),
    *(Fault(kind="garbage", at=at) for at in ("launch", "stop", "list")),
    *(Fault(kind="429", at=at) for at in ("launch", "status", "stop")),
    *(Fault(kind="lost_answer", at=at) for at in ("launch", "stop", "list", "prompt")),
    Fault(kind="lost_answer", at="stop", times=4),
    Fault(kind="401", at="launch"),
    Fault(kind="402", at="launch"),
    Fault(kind="slow", at="launch", seconds=3),
    Fault(kind="slow", at="stop", seconds=3),
    Fault(kind="fails_to_start"),
    Fault(kind="vanish"),
    Fault(kind="ws_drop"),
    Fault(kind="forget"),
    Fault(kind="run_error"),
]
"""Not `never_ready`: a launch is waited for 15 minutes."""


class RentedServer(BaseModel):
    """As the ledger shows it."""

    server_id: str
    workflow_version_id: str
    launched_at: datetime
    ended_at: datetime | None
    ended_by: str | None


_SERVERS = TypeAdapter(list[RentedServer])


def rented(server: RunComfyServer) -> list[RentedServer]:
    return _SERVERS.validate_python(server.ledger()["servers"])


async def trouble(server: RunComfyServer, seed: int, given: Counter[str]) -> None:
    """Faults of the provider, one after the other, until this is cancelled; counted in `given`."""
    chance = random.Random(f"faults {seed}")  # noqa: S311 - it has to be repeatable
    while True:
        await asyncio.sleep(chance.uniform(0, 2 * _FAULT_EVERY_S))
        fault = chance.choice(_FAULTS)
        given[fault.kind] += 1
        server.fail(fault)


async def at_rest(url: str, server: RunComfyServer) -> list[str]:
    """The ids of sessions that still live after a while, when everything is up again and the provider well."""
    end = time.monotonic() + _END_S
    async with httpx.AsyncClient(timeout=60, trust_env=False) as http:
        while True:
            answer = (await http.get(f"{url}{PATH}?living=true")).raise_for_status()
            living = [view.session_id for view in SessionListing.model_validate_json(answer.content).sessions]
            if not living and not any(one.ended_at is None for one in rented(server)):
                return []
            if time.monotonic() > end:
                return living
            await asyncio.sleep(_PAUSE_S)


async def sessions_by_end(address: str, namespace: str) -> Counter[str]:
    """How the workflows of sessions ended, as Temporal counts them."""
    client = await Client.connect(address, namespace=namespace)
    query = f"WorkflowType = '{names.TOOL_GROUP}'"
    return Counter([one.status.name.lower() async for one in client.list_workflows(query) if one.status is not None])


def broken_rentals(servers: Iterable[RentedServer], living: Sequence[str]) -> list[str]:
    """What is said against us: servers that still run, that nobody planned, or that one session had at once."""
    of_session: defaultdict[str, list[RentedServer]] = defaultdict(list)
    for one in servers:
        of_session[one.workflow_version_id].append(one)
    faults = [f"session {session_id} still lives" for session_id in living]
    for version, every in of_session.items():
        faults += [f"server {one.server_id} of {version} still runs" for one in every if one.ended_at is None]
        inorder = sorted(every, key=lambda one: one.launched_at)
        for earlier, later in pairwise(inorder):
            if earlier.ended_at is None or earlier.ended_at > later.launched_at:
                faults.append(f"{version} had {later.server_id} launched while it had {earlier.server_id}")
    return faults


def counts(planned: Sequence[PlannedSession], servers: Sequence[RentedServer]) -> list[dict[str, object]]:
    """A row for each ending, and one for all."""
    by_version = {one.version: one for one in planned}
    endings = sorted({one.ending for one in planned})
    rows: list[dict[str, object]] = []
    for name, of_row in (*((ending.value, {ending}) for ending in endings), ("all", {*endings})):
        of_ending = [one for one in planned if one.ending in of_row]
        theirs = [one for one in servers if by_version[one.workflow_version_id].ending in of_row]
        rows.append(
            {
                "ending": name,
                "sessions": len(of_ending),
                "launched": len(theirs),
                "stopped": sum(one.ended_by == "stopped" for one in theirs),
                "vanished": sum(one.ended_by == "vanished" for one in theirs),
                "running": sum(one.ended_by is None for one in theirs),
                "launched again": sum(number > 1 for number in Counter(one.workflow_version_id for one in theirs).values()),
            }
        )
    return rows
