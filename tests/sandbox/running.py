"""`python -m tests.sandbox.running LEVEL|none FOLDER TOGETHER [NAME…]` makes attempts at a level, and writes a line of JSON for each.

`TOGETHER` of those that need nothing of their own run one after the other in one sandbox, because starting it takes longest.
"""

import asyncio
import contextlib
import ctypes
import json
import os
import secrets
import shutil
import stat
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import pyseccomp
import uvloop

from engine.disk.removal import remove
from engine.network.ports import free_port
from engine.runtimes.docker.serving.sandbox_level import ContainerLevel
from engine.runtimes.docker_engine.engine import Engine
from engine.runtimes.environments.execution import Executor, Order
from engine.runtimes.process.box import Box, Level, Mount
from engine.runtimes.process.guardian import Guardian
from engine.runtimes.process.ownership import Owner
from engine.runtimes.process.processes import Launcher
from engine.runtimes.sandbox.identities import DEFAULT_UIDS
from engine.runtimes.sandbox.levels.bubblewrap import Bubblewrap
from engine.runtimes.sandbox.levels.cgroups import Cgroups
from engine.runtimes.sandbox.levels.rlimits import RLimits
from engine.runtimes.sandbox.sandbox import Sandbox
from tests.sandbox.abuse import EDGE, MARK, Attempt, Seen, Verdict, batch, says
from tests.sandbox.attempts import ATTEMPTS
from tests.sandbox.attempts_resources import LIMITS
from tests.sandbox.unboxed import Trial, unboxed
from tests.sandbox.victims import Victims, victims
from toolagent.contracts.sandbox import SandboxLevel, SandboxPolicy
from workers.host.sandbox import identities

__all__ = ["made"]

_AT_ONCE = 3
_BATCH_S = 60.0
_GONE_S = 5.0
_LATER_S = 2.0
_LOOK_S = 0.1
_PYTHON = str(Path(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}"))
_EVERYBODYS = ("/dev/shm", "/tmp")  # noqa: S108 - the machine's
_CGROUPS = Path("/sys/fs/cgroup")


def _bubblewrap(state: Path, owner: Owner) -> Level:
    return Bubblewrap(state / "etc", Cgroups(owner), identities())


def _docker(state: Path, owner: Owner) -> Level:
    return ContainerLevel(state / "etc", Engine(), owner, identities())


def _rlimits(state: Path, owner: Owner) -> Level:
    return RLimits(state / "rlimits", owner, Cgroups(owner), identities())


_LEVELS: Mapping[SandboxLevel, Callable[[Path, Owner], Level]] = {
    SandboxLevel.BUBBLEWRAP: _bubblewrap,
    SandboxLevel.DOCKER: _docker,
    SandboxLevel.RLIMITS: _rlimits,
}


@dataclass(slots=True)
class Field:
    """The place of attempts. `run` runs a program."""

    run: Callable[[Trial], Awaitable[Seen]]
    victims: Victims
    folder: Path

    async def try_all(self, attempts: Sequence[Attempt], together: int) -> AsyncGenerator[tuple[str, Verdict]]:
        """Run some side by side, then the others alone."""
        places = asyncio.Semaphore(_AT_ONCE)

        async def in_turn(several: Sequence[Attempt]) -> list[tuple[str, Verdict]]:
            async with places:
                return [(one.name, verdict) for one, verdict in zip(several, await self.try_together(several), strict=True)]

        for done in asyncio.as_completed(map(in_turn, _batches(attempts, together))):
            for told in await done:
                yield told
        for attempt in attempts:
            if attempt.alone:
                yield attempt.name, await self.try_(attempt)

    async def try_(self, attempt: Attempt) -> Verdict:
        squatting = asyncio.create_task(self._squatted()) if attempt.alone else None
        seen = await self._seen(attempt.text(), attempt.wall_s, has_way=attempt.has_way)
        reached = self.victims.reached() if attempt.alone else ()
        if squatting is not None:
            squatting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                reached = (*reached, *(["it served on the machine's port"] if await squatting else []))
        return attempt.judge(replace(seen, reached=reached))

    async def try_together(self, attempts: Sequence[Attempt]) -> list[Verdict]:
        """In one sandbox, each judged by its report. Those without a report, or all if anything is left, are repeated alone."""
        if len(attempts) == 1:
            return [await self.try_(attempts[0])]
        seen = await self._seen(batch(attempts), _BATCH_S)
        outs, errs = (text.split(EDGE)[1:] for text in (seen.out, seen.err))
        if seen.left or len(outs) != len(attempts) or len(errs) != len(attempts):
            return [await self.try_(attempt) for attempt in attempts]
        return [
            attempt.judge(replace(seen, out=out, err=err)) if says(out) else await self.try_(attempt)
            for attempt, out, err in zip(attempts, outs, errs, strict=True)
        ]

    async def _seen(self, text: str, wall_s: float, *, has_way: bool = False) -> Seen:
        token = str(secrets.randbelow(10**12) + 10**12)
        name = f"attempt-{token}"
        data = self.folder / name
        data.mkdir()
        told = {
            **self.victims.told,
            "token": token,
            "data": str(data),
            "disk": LIMITS.disk_bytes,
            "processes": LIMITS.processes,
            "files": LIMITS.open_files,
        }
        own = (self.victims.state / "project", self.victims.state / "environment")
        argv = (_PYTHON, "-I", "-S", "-c", text, json.dumps(told))
        seen = await self.run(Trial(name, argv, data, own, wall_s, has_way))
        left = await asyncio.to_thread(_left, token, data)
        await asyncio.to_thread(remove, data)
        return replace(seen, left=left)

    async def _squatted(self) -> bool:
        while not await self.victims.is_served_by_somebody():  # noqa: ASYNC110 - who serves tells nobody
            await asyncio.sleep(_LOOK_S)
        return True


def _boxed(executor: Executor, logs: Path) -> Callable[[Trial], Awaitable[Seen]]:
    async def run(trial: Trial) -> Seen:
        mounts = (*(Mount(path, path) for path in trial.own), Mount(trial.data, trial.data, writable=True))
        environment = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": str(trial.data)}
        box = Box(trial.name, trial.data, LIMITS, mounts, environment, (free_port(),) if trial.has_way else ())
        ran = await executor.run(Order(trial.argv, box, trial.wall_s, logs / trial.name))
        out, err = ran.stdout.decode(errors="replace"), ran.stderr.decode(errors="replace")
        return Seen(ran.code, out, err, ran.cut, ran.duration_s, ran.ending.out_of_memory, ran.ending.disk_full)

    return run


def _left(token: str, data: Path) -> tuple[str, ...]:
    """What outlived a run, a moment after its end. It is removed then, for the next run."""
    until = time.monotonic() + _GONE_S
    while (processes := _processes(token)) and time.monotonic() < until:
        time.sleep(_LOOK_S)
    left = [f"a process was left ({process.pid})" for process in processes]
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.kill()
    if _waits_for_later(data):
        time.sleep(_LATER_S)
    if (data / "later").exists():
        left.append("a process wrote after the end")
    for planted in (Path(folder, f"planted-{token}") for folder in _EVERYBODYS):
        if planted.exists():
            left.append(f"{planted.parent}/planted was left")
            remove(planted) if planted.is_dir() else planted.unlink()
    left += [f"the control group {path} was left" for path in _groups(token)]
    return (*left, *_planted(data), *_shared_memory(), *_message_queue())


def _waits_for_later(data: Path) -> bool:
    return (data / "soon").exists()


def _planted(data: Path) -> list[str]:
    left: list[str] = []
    for path in data.iterdir():
        with contextlib.suppress(OSError):
            status = path.lstat()
            if stat.S_ISREG(status.st_mode) and status.st_mode & stat.S_ISUID and status.st_uid not in DEFAULT_UIDS:
                left.append("a setuid file was left")
            if path.name.startswith("core"):
                left.append("a core dump was left")
    return left


def _shared_memory() -> list[str]:
    key = str(0x5EC12E7)
    try:
        lines = Path("/proc/sysvipc/shm").read_text().splitlines()
    except OSError:
        return []
    left = [int(line.split()[1]) for line in lines if line.split()[0] == key]
    for segment in left:
        ctypes.CDLL(None).shmctl(segment, 0, None)
    return ["shared memory was left" for _ in left]


def _message_queue() -> list[str]:
    # The kernel knows no slash before its name.
    unlinked: int = ctypes.CDLL(None).syscall(pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, "mq_unlink"), b"planted")
    return ["a message queue was left"] if unlinked == 0 else []


def _processes(token: str) -> list[psutil.Process]:
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.pid != os.getpid() and token in " ".join(process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def _groups(token: str) -> list[Path]:
    # Others come and go meanwhile.
    return [Path(folder, name) for folder, names, _ in os.walk(_CGROUPS) for name in names if token in name]


async def made(level: SandboxLevel | None, folder: Path, together: int, names: tuple[str, ...]) -> AsyncGenerator[tuple[str, Verdict]]:
    """The attempts of these names, or all; without a sandbox the harmless ones, each alone."""
    chosen = [attempt for name, attempt in ATTEMPTS.items() if not names or name in names]
    state = folder / "state"
    (folder / "logs").mkdir()
    if level is None:
        for attempt in chosen:
            if not attempt.harms:
                yield attempt.name, await _outside(attempt, folder, state)
        return
    state.mkdir()
    owner = Owner.of_this_process(state)
    with Guardian(owner) as guardian:
        launcher = Launcher(owner, guardian, {"PATH": "/usr/bin:/bin", "SECRET": MARK + "launcher"}, shutil.which("setpriv"))
        chosen_level = _LEVELS[level](folder, owner)
        async with victims(state) as around:
            field = Field(_boxed(Executor(launcher, Sandbox(chosen_level, SandboxPolicy())), folder / "logs"), around, folder)
            async for told in field.try_all(chosen, together):
                yield told


async def _outside(attempt: Attempt, folder: Path, state: Path) -> Verdict:
    # Nothing keeps it from spoiling what the next one is after.
    await asyncio.to_thread(state.mkdir)
    async with victims(state) as around:
        verdict = await Field(unboxed, around, folder).try_(attempt)
    await asyncio.to_thread(remove, state)
    return verdict


def _batches(attempts: Sequence[Attempt], together: int) -> list[Sequence[Attempt]]:
    """Attempts that may run side by side."""
    several = [attempt for attempt in attempts if attempt.is_shared]
    single = [attempt for attempt in attempts if not attempt.alone and not attempt.is_shared]
    return [*(several[first : first + together] for first in range(0, len(several), together)), *([one] for one in single)]


async def _main(level: str, folder: str, together: str, *names: str) -> None:
    async for name, verdict in made(None if level == "none" else SandboxLevel(level), Path(folder), int(together), names):
        sys.stdout.write(json.dumps({"name": name, "held": verdict.held, "by": verdict.by}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    # As the worker does: what a child inherits is the loop's doing.
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_main(*sys.argv[1:]))
