"""A worker of another process, that a test may kill."""

import asyncio
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import uv

from tests.programs import start_program

__all__ = ["Told", "start_worker"]

ROOT = Path(__file__).parents[2]
WORKER = Path(__file__).parent / "programs/worker.py"


@dataclass(frozen=True, slots=True)
class Told:
    """What it says of itself: the pids of its guardian, of the sandbox and of all in there; whether it installed an environment."""

    pids: dict[str, int]
    installed: bool


async def start_worker(state: Path, environments: Path, setpriv: str | None) -> tuple[asyncio.subprocess.Process, Told]:
    worker = await start_program(
        sys.executable,
        str(WORKER),
        str(state),
        str(environments),
        uv.find_uv_bin(),
        setpriv or "",
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},  # noqa: TID251 - a child of a test
        stdout=asyncio.subprocess.PIPE,
    )
    assert worker.stdout is not None
    return worker, Told(**json.loads(await asyncio.wait_for(worker.stdout.readline(), 60)))
