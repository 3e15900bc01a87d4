"""Sessions of a group while processes are killed and the provider fails: what was launched is stopped."""

import argparse
import asyncio
import tempfile
import time
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.chaos.cast import Cast
from bench.chaos.killing import kill_all, revive, stopped
from bench.chaos.plan import SERVICE, Door, Victim, plan_kills
from bench.chaos.rental_truth import at_rest, broken_rentals, counts, impatience, rented, sessions_by_end, trouble
from bench.chaos.rentals import GROUP, plan_sessions
from bench.machine import load_average
from bench.service import ROOT
from toolagent.testing.servers.runcomfy_server import Account, RunComfyServer
from workers.temporal.dev_server import read_config

_LAUNCH_S = 1.0
_LIMITS = {GROUP: {"idle_timeout_s": 20, "total_timeout_s": 240, "max_sessions": 200}}
_LOOK_S = 0.5
_LONGEST_S = 1_800.0


def rent(asked: argparse.Namespace, console: Console) -> int:
    """Returns 1 when a promise was broken, else 0."""
    began, load = time.monotonic(), load_average()
    planned = plan_sessions(asked.seed, asked.sessions)
    account = Account(versions=[one.version for one in planned])
    given: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="tool-agent-chaos-") as name, RunComfyServer(account=account, start_s=_LAUNCH_S) as provider:
        folder = Path(name)
        # PostgreSQL runs as an ordinary user and has to find its way in.
        folder.chmod(0o711)
        settings = {
            "RUNCOMFY_URL": provider.api_url,
            "SECRET_RUNCOMFY_USER_ID": account.user_id,
            "SECRET_RUNCOMFY_API_KEY": account.key,
        }
        with Cast(folder, asked.lanes, asked.database, settings, _LIMITS) as cast:
            console.print(f"seed {asked.seed}, {asked.sessions} sessions, {cast.database}; everybody is up", highlight=False)
            ends, faults = asyncio.run(_act(cast, provider, asked, given, console))
            cast.stop()
            faults += [f"left over: {left}" for left in cast.leftovers()]
        servers, stops_of_none = rented(provider), provider.ledger()["stops_of_none"]
    if folder.exists():
        faults.append("left over: the folder of the run")
    console.print(_table(planned_rows := counts(planned, servers)))
    told = ", ".join(f"{kind} {number}" for kind, number in sorted(given.items()))
    console.print(f"faults of the provider: {told}; stops of what was gone: {stops_of_none}", highlight=False)
    console.print("workflows of sessions: " + ", ".join(f"{end} {number}" for end, number in sorted(ends.items())), highlight=False)
    killed = ", ".join(f"{victim} {number}" for victim, number in cast.kills.items() if number)
    console.print(
        f"killed {sum(cast.kills.values())} times: {killed}; seed {asked.seed}; {time.monotonic() - began:.0f} s", highlight=False
    )
    console.print(f"load average {load} before, {load_average()} after", highlight=False)
    if not planned_rows[-1]["launched"]:
        faults.append("nothing was launched")
    for fault in faults:
        console.print(f"BROKEN: {fault}", style="red", markup=False, highlight=False, soft_wrap=True)
    if not faults:
        console.print(
            "Whatever was launched is stopped; no session had two servers at once, or another one after one that it could use; "
            "nothing is left over."
        )
    return 1 if faults else 0


async def _act(
    cast: Cast, provider: RunComfyServer, asked: argparse.Namespace, given: Counter[str], console: Console
) -> tuple[Counter[str], list[str]]:
    namespace = read_config(ROOT / "temporal-dev.yaml").namespace
    numbers = {"seed": asked.seed, "sessions": asked.sessions, "callers": asked.callers}
    options = {**numbers, "temporal": cast.temporal_address, "namespace": namespace, "begun": cast.folder / "begun"}
    cast.rent(["-m", "bench.chaos.rentals", *(f"--{name}={value}" for name, value in options.items()), *cast.urls.values()])
    kills = asyncio.create_task(kill_all(cast, plan_kills(asked.seed, asked.kills, (*SERVICE, Victim.RENTER)), asked.duration, console))
    revivals, troubles = asyncio.create_task(revive(cast)), asyncio.create_task(trouble(provider, asked.seed, given))
    operator = asyncio.create_task(impatience(cast.urls[Door.UP]))
    try:
        async with asyncio.timeout(_LONGEST_S):
            await _rented(cast)
        await stopped(kills)
        await stopped(troubles)
        cast.ready()
        living = await at_rest(cast.urls[Door.UP], provider)
        ends = await sessions_by_end(cast.temporal_address, namespace)
    finally:
        for task in (kills, troubles, revivals, operator):
            await stopped(task)
    return ends, broken_rentals(
        rented(provider), living, int(str(provider.ledger()["stops_of_none"])), sum(cast.kills[one] for one in SERVICE)
    )


async def _rented(cast: Cast) -> None:
    """A process tells nobody that it ends: it is looked at."""
    while not cast.has_rented:  # noqa: ASYNC110
        await asyncio.sleep(_LOOK_S)


def _table(rows: list[dict[str, object]]) -> Table:
    table = Table(title="Chaos: sessions of a group, and the servers that they launched", title_justify="left")
    for column in rows[0]:
        table.add_column(column, justify="left" if column == "ending" else "right")
    for row in rows:
        table.add_row(*map(str, row.values()), style="bold" if row["ending"] == "all" else "")
    return table
