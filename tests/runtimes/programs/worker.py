"""A worker to be killed: runs a supervisor with one tool, that starts two processes itself; prints all pids and stays."""

import asyncio
import json
import sys
from pathlib import Path

from engine.runtimes import make_runtimes
from engine.runtimes.builtin import builtin_tools
from engine.runtimes.builtin.options import BuiltinOptions
from engine.runtimes.environments import Environments
from engine.runtimes.guardian import Guardian
from engine.runtimes.http_exchange import HttpExchange
from engine.runtimes.local import LocalSettings
from engine.runtimes.ownership import Owner
from engine.runtimes.parts import RuntimeParts
from engine.runtimes.processes import Launcher
from engine.runtimes.supervisor import Supervisor
from tests.runtimes.conftest import BASE_ENVIRONMENT, PROJECTS, Routes, entry_of, nothing, request_of, silent


async def main(state: Path, environments: Path, uv: str, setpriv: str | None) -> None:
    guardian = Guardian(Owner.of_this_process(state))
    guardian.start()
    launcher = Launcher(Owner.of_this_process(state), guardian, BASE_ENVIRONMENT, setpriv)
    parts = RuntimeParts(
        local=LocalSettings(data=PROJECTS, state=state),
        launcher=launcher,
        environments=Environments(environments, uv, launcher, BASE_ENVIRONMENT),
        http=HttpExchange(),
        secrets=lambda _: None,
        builtin_tools=builtin_tools(BuiltinOptions()),
    )
    supervisor = Supervisor(make_runtimes(parts), Routes(), "here")
    found: dict[str, object] = {"guardian": guardian.pid}
    for name, leave in [("child", False), ("daemon", True)]:
        request = request_of(mode="spawn", leave=leave)
        reply = await supervisor.call(entry_of(), request, before_send=nothing, progress=silent)
        match reply.output:
            case {"child": child, "pid": pid}:
                found |= {name: child, "tool": pid}
            case other:
                raise AssertionError(other)
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4] or None))
