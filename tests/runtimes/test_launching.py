"""A launch that is cancelled at any moment leaves nothing behind."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from engine.runtimes.environments.execution import Executor, Order
from engine.runtimes.process.box import Box, Prepared
from engine.runtimes.process.launching import launched
from engine.runtimes.process.ownership import Owner
from engine.runtimes.process.processes import Launcher
from engine.runtimes.sandbox.levels.bubblewrap import Bubblewrap
from engine.runtimes.sandbox.levels.cgroups import Cgroups
from engine.runtimes.sandbox.sandbox import Sandbox
from tests.runtimes.conftest import leftovers
from toolagent.contracts.sandbox import SandboxPolicy
from workers.host.sandbox import identities


class Slow(Bubblewrap):
    """A level whose preparation waits for the test."""

    def __init__(self, state: Path) -> None:
        super().__init__(state / "etc", Cgroups(Owner.of_this_process(state)), identities())
        self.begun, self.going = asyncio.Event(), asyncio.Event()

    async def prepare(self, argv: Sequence[str], box: Box) -> Prepared:
        prepared = await super().prepare(argv, box)
        self.begun.set()
        await self.going.wait()
        return prepared


async def cancelled(task: asyncio.Task[object], level: Slow, *, times: int) -> None:
    """Cancel in the middle of its launch."""
    async with asyncio.timeout(60):
        await level.begun.wait()
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0)
        level.going.set()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_program_that_is_cancelled_twice_while_it_is_launched_leaves_nothing(state: Path, launcher: Launcher) -> None:
    level = Slow(state)
    executor = Executor(launcher, Sandbox(level, SandboxPolicy()))
    box = Box("slow", Path("/"), SandboxPolicy().defaults, environment={"PATH": "/usr/bin:/bin"})
    running = asyncio.create_task(executor.run(Order(["/bin/sleep", "1000"], box, 100, state / "logs")))
    await cancelled(running, level, times=3)
    assert leftovers(state) == []


async def test_a_first_try_that_is_cancelled_leaves_nothing(state: Path, launcher: Launcher) -> None:
    level = Slow(state)
    choosing = asyncio.create_task(Sandbox.choose([level], SandboxPolicy(), launcher, state / "logs"))
    await cancelled(choosing, level, times=1)
    assert leftovers(state) == []


async def test_what_fails_to_launch_while_it_is_cancelled_has_nothing_to_be_ended() -> None:
    failing, ended = asyncio.Event(), list[int]()

    async def launch() -> int:
        await failing.wait()
        raise OSError

    async def end(one: int) -> None:
        ended.append(one)

    launching = asyncio.create_task(launched(launch(), end))
    await asyncio.sleep(0)
    launching.cancel()
    await asyncio.sleep(0)
    failing.set()
    with pytest.raises(asyncio.CancelledError):
        await launching
    assert ended == []
