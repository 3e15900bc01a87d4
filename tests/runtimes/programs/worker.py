"""A worker that tests kill: runs a supervisor with one tool, which starts two processes; prints all pids and waits."""

import asyncio
import json
import sys
from dataclasses import replace
from pathlib import Path

from engine.runtimes import make_runtimes
from engine.runtimes.builtin import builtin_tools
from engine.runtimes.builtin.options import BuiltinOptions
from engine.runtimes.http.exchange import HttpExchange
from engine.runtimes.local.boxed_runs import LocalSettings
from engine.runtimes.parts import RuntimeParts
from engine.runtimes.process.guardian import Guardian
from engine.runtimes.process.ownership import Owner
from engine.runtimes.process.processes import Launcher
from engine.runtimes.running.dispatch import Dispatch
from engine.runtimes.running.supervisor import Supervisor
from tests.parts import sandboxing
from tests.runtimes.conftest import BASE_ENVIRONMENT, PROJECTS, Routes, entry_of, inside, request_of


async def main(state: Path, environments: Path, uv: str, setpriv: str | None) -> None:
    guardian = Guardian(Owner.of_this_process(state))
    guardian.start()
    launcher = Launcher(Owner.of_this_process(state), guardian, BASE_ENVIRONMENT, setpriv)
    parts = RuntimeParts(
        local=LocalSettings(data=PROJECTS, state=state, calls=state / "calls"),
        launcher=launcher,
        sandboxing=sandboxing(state, launcher, environments, uv_binary=uv),
        http=HttpExchange(),
        secrets=lambda _: None,
        builtin_tools=builtin_tools(BuiltinOptions()),
    )
    supervisor, told = Supervisor(make_runtimes(parts), Routes(), "here"), list[str]()
    for leave in (False, True):
        request = replace(request_of(mode="spawn", leave=leave), progress=told.append)
        await supervisor.call(Dispatch(entry_of(), request))
    route = supervisor.route("versatile")
    if route is None or route.pid is None:
        raise AssertionError(route)
    pids = {"guardian": guardian.pid, "sandbox": route.pid, **{f"inside {pid}": pid for pid in inside(route.pid)}}
    installed = any(text.startswith("installing") for text in told)
    sys.stdout.write(json.dumps({"pids": pids, "installed": installed}) + "\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4] or None))
