"""Workbenches in a real sandbox, with this machine's own package index."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest_asyncio
import uv

from engine.making.workbench.bench import Workbench, Workbenches
from engine.making.workbench.runs import BenchParts
from engine.runtimes.environments.execution import Executor
from engine.runtimes.environments.programs import Programs
from engine.runtimes.sandbox.egress import Egress
from engine.runtimes.sandbox.sandbox import Sandbox
from tests.parts import bubblewrap, installer_of, launching, machine_indexes
from toolagent.contracts.sandbox import SandboxPolicy

TASK = "create_0a1b2c3d"


@asynccontextmanager
async def bench_parts(state: Path) -> AsyncGenerator[BenchParts]:
    """The parts of a worker with this state directory."""
    await asyncio.to_thread(state.mkdir, parents=True, exist_ok=True)
    with launching(state) as launcher:
        sandbox = Sandbox(bubblewrap(state), SandboxPolicy())
        programs = Programs.found(Path(uv.find_uv_bin()))
        installer = installer_of(machine_indexes(programs), Egress(state))
        yield BenchParts(launcher, Executor(launcher, sandbox), programs, installer)


@pytest_asyncio.fixture
async def benches(tmp_path: Path) -> AsyncGenerator[Workbenches]:
    async with bench_parts(tmp_path / "state") as parts:
        benches = Workbenches(tmp_path / "state" / "making", parts, "The tests have no engine.")
        yield benches
        await benches.close()


@pytest_asyncio.fixture
async def bench(benches: Workbenches) -> Workbench:
    return await benches.of(TASK)
