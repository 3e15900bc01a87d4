"""A worker in another process, which a test may kill."""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path

import uv

from tests.copies import start_copy
from tests.system.loaded import Process

__all__ = ["Told", "start_worker"]


@dataclass(frozen=True, slots=True)
class Told:
    """Its report: the pids of its guardian, of the sandbox and of all processes in it; whether it installed an environment."""

    pids: dict[str, int]
    installed: bool


async def start_worker(state: Path, environments: Path, setpriv: str | None) -> tuple[Process, Told]:
    worker, said = start_copy("tests.runtimes.programs.worker", str(state), str(environments), uv.find_uv_bin(), setpriv or "")
    with said:
        return worker, Told(**json.loads(await asyncio.to_thread(said.readline)))
