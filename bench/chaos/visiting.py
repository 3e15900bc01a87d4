"""MCP clients while processes are killed, also those of the imported server whose tools they call."""

import argparse
import asyncio
import random
import shutil
import signal
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import httpx
import psutil
from pydantic import JsonValue
from rich.console import Console

from bench.chaos.cast import Cast
from bench.chaos.killing import kill_all, revive, stopped
from bench.chaos.plan import Door, plan_kills
from bench.chaos.truth import running_workflows
from bench.chaos.visit_truth import VisitFate, broken_visits, fates_of_visits, table_of
from bench.chaos.visits import SERVER, Visitors, plan_visits
from bench.machine import load_average
from bench.processes import NotReadyError, until
from bench.service import ROOT
from workers.temporal.dev_server import read_config

_PROGRAM = Path(__file__).with_name("stdio_server.py")
_PYTHON = "/usr/bin/python3"
"""That of the machine: a server of a command sees no environment of ours."""

_SETTINGS = {"MCP_TASK_AFTER_S": "0"}
_IMPORT_S = 120.0


def visit(asked: argparse.Namespace, console: Console) -> int:
    """Returns 1 when a promise was broken, else 0."""
    began, load = time.monotonic(), load_average()
    killed: list[int] = []
    with tempfile.TemporaryDirectory(prefix="tool-agent-chaos-") as name:
        folder = Path(name)
        # PostgreSQL runs as an ordinary user and has to find its way in.
        folder.chmod(0o711)
        with Cast(folder, asked.lanes, asked.database, _SETTINGS, imported=_servers) as cast:
            _imported(cast)
            console.print(f"seed {asked.seed}, {asked.mcp} calls by MCP, {cast.database}; everybody is up", highlight=False)
            fates, faults = asyncio.run(_act(cast, asked, killed, console))
            cast.stop()
            faults += [f"left over: {left}" for left in cast.leftovers()]
    if folder.exists():
        faults.append("left over: the folder of the run")
    console.print(table_of(fates))
    victims = ", ".join(f"{victim} {number}" for victim, number in cast.kills.items() if number)
    console.print(
        f"killed {sum(cast.kills.values())} times: {victims}; processes of the imported server {len(killed)} times; "
        f"seed {asked.seed}; {time.monotonic() - began:.0f} s",
        highlight=False,
    )
    console.print(f"load average {load} before, {load_average()} after", highlight=False)
    for fault in faults:
        console.print(f"BROKEN: {fault}", style="red", markup=False, highlight=False, soft_wrap=True)
    if not faults:
        console.print("Every accepted call ended with one result, however it was asked for; nothing acted twice; nothing is left over.")
    return 1 if faults else 0


def _servers(programs: Path, effects: Path) -> JsonValue:
    program = programs / _PROGRAM.name
    shutil.copyfile(_PROGRAM, program)
    program.chmod(0o644)
    rights: dict[str, JsonValue] = {"allow_read": [str(programs)], "allow_write": [str(effects)]}
    return {SERVER: {"command": _PYTHON, "args": [str(program), str(effects)], "trusted": True, **rights}}


def _imported(cast: Cast) -> None:
    """Wait for the server's tools. Raises NotReadyError."""
    url = f"{cast.urls[Door.UP]}/tools/{SERVER}_note"
    if not until(lambda: httpx.get(url, trust_env=False, timeout=30).is_success, _IMPORT_S):
        told = httpx.get(f"{cast.urls[Door.UP]}/mcp_servers", trust_env=False, timeout=30).text
        raise NotReadyError(f"the server was not imported within {_IMPORT_S:g} s: {told[:1000]}")


async def _act(cast: Cast, asked: argparse.Namespace, killed: list[int], console: Console) -> tuple[Sequence[VisitFate], list[str]]:
    visitors = Visitors(cast.urls)
    kills = asyncio.create_task(kill_all(cast, plan_kills(asked.seed, asked.kills), asked.duration, console))
    server_kills = asyncio.create_task(_kill_servers(cast, asked.seed, killed, console))
    revivals = asyncio.create_task(revive(cast))
    try:
        visited = await visitors.visit_all(plan_visits(asked.seed, asked.mcp), asked.callers)
        await stopped(kills)
        await stopped(server_kills)
        cast.ready()
        fates = await fates_of_visits(visited, visitors, cast.effects)
        namespace = read_config(ROOT / "temporal-dev.yaml").namespace
        running = await running_workflows(cast.temporal_address, namespace, cast.urls[Door.UP])
    finally:
        for task in (kills, server_kills, revivals):
            await stopped(task)
    return fates, [*broken_visits(fates), *(f"{workflow} still runs" for workflow in running)]


async def _kill_servers(cast: Cast, seed: int, killed: list[int], console: Console) -> None:
    """One process of the imported server after the other, on whatever host it is."""
    chance = random.Random(f"servers {seed}")  # noqa: S311 - it has to be repeatable
    while True:
        await asyncio.sleep(chance.uniform(2.0, 5.0))
        if running := _servers_of(str(cast.effects)):
            process = chance.choice(running)
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
                killed.append(process.pid)
                console.print(f"kill -9 imported server {process.pid}", highlight=False)


def _servers_of(effects: str) -> Sequence[psutil.Process]:
    """The servers themselves, not the sandboxes that name them too."""
    found: dict[int, psutil.Process] = {}
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            command = process.cmdline()
            if command[:1] == [_PYTHON] and command[-1] == effects:
                found[process.pid] = process
    return [found[pid] for pid in sorted(found)]
