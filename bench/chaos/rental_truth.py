"""What is true of rented servers afterwards, by the ledger of who rents them out."""

import asyncio
import random
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import httpx
from pydantic import BaseModel, TypeAdapter
from temporalio.client import Client

from bench.chaos.rentals import PATH, PlannedSession
from toolagent.client import names
from toolagent.contracts.http import SessionListing
from toolagent.contracts.sessions import SessionState, SessionView
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
    Fault(kind="never_ready"),
    Fault(kind="vanish"),
    Fault(kind="ws_drop"),
    Fault(kind="forget"),
    Fault(kind="run_error"),
]
_PATIENCE = timedelta(seconds=45)
"""So long a session may launch; a server that never becomes ready is waited for 15 minutes."""

_IMPATIENT_S = 5.0


class RentedServer(BaseModel):
    """As the ledger shows it."""

    server_id: str
    workflow_version_id: str
    launched_at: datetime
    ended_at: datetime | None
    ended_by: str | None
    ready_after_s: float | None
    fails: bool
    stops_again: int
    stops_unanswered: int

    @property
    def could_be_used(self) -> bool:
        """Whether it became ready, and was there until it was stopped."""
        return self.ended_by != "vanished" and not self.fails and self.ready_after_s is not None

    @property
    def needless_stops(self) -> int:
        """Those that came although an earlier one had been answered; one tells that it has vanished."""
        return max(0, self.stops_again - self.stops_unanswered - (self.ended_by == "vanished"))


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


async def impatience(url: str) -> None:
    """Of an operator who stops what launches for too long, until this is cancelled."""
    async with httpx.AsyncClient(timeout=60, trust_env=False) as http:
        while True:
            await asyncio.sleep(_IMPATIENT_S)
            with suppress(httpx.HTTPError):
                for view in await _living(http, url):
                    if view.state is SessionState.LAUNCHING and view.opened_at < datetime.now(UTC) - _PATIENCE:
                        await http.post(f"{url}{PATH}/{view.session_id}/stop")


async def at_rest(url: str, server: RunComfyServer) -> list[str]:
    """The ids of sessions that still live after a while, when everything is up again and the provider well."""
    end = time.monotonic() + _END_S
    async with httpx.AsyncClient(timeout=60, trust_env=False) as http:
        while True:
            living = [view.session_id for view in await _living(http, url)]
            if not living and not any(one.ended_at is None for one in rented(server)):
                return []
            if time.monotonic() > end:
                return living
            await asyncio.sleep(_PAUSE_S)


async def _living(http: httpx.AsyncClient, url: str) -> tuple[SessionView, ...]:
    answer = (await http.get(f"{url}{PATH}?living=true")).raise_for_status()
    return SessionListing.model_validate_json(answer.content).sessions


async def sessions_by_end(address: str, namespace: str) -> Counter[str]:
    """How the workflows of sessions ended, as Temporal counts them."""
    client = await Client.connect(address, namespace=namespace)
    query = f"WorkflowType = '{names.TOOL_GROUP}'"
    return Counter([one.status.name.lower() async for one in client.list_workflows(query) if one.status is not None])


def broken_rentals(servers: Sequence[RentedServer], living: Sequence[str], stops_of_none: int, kills: int) -> list[str]:
    """What is said against us: servers that still run, that one session had at once or after one that it could use, and needless stops.

    Who is killed before it can write down that a stop was confirmed stops again: so much is granted to each kill.
    """
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
            elif earlier.could_be_used:
                faults.append(f"{version} had {later.server_id} launched again after {earlier.server_id}")
    if (needless := sum(one.needless_stops for one in servers)) > kills:
        faults.append(f"{needless} stops of servers that were known to be stopped, at {kills} kills")
    if (strange := stops_of_none - sum(one.stops_again for one in servers)) > 0:
        faults.append(f"{strange} stops of servers that never were")
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
                "needless stops": sum(one.needless_stops for one in theirs),
                "launched again": sum(number > 1 for number in Counter(one.workflow_version_id for one in theirs).values()),
            }
        )
    return rows
