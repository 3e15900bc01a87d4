"""What isolation costs: launches, script calls and commands in containers, each in turns with the same thing done bare."""

import asyncio
import json
import shutil
import statistics
import subprocess
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import docker
from docker.errors import DockerException

from bench.processes import bare_environment
from bench.results import Single
from bench.service import SCRIPT, SCRIPT_ACTING, SCRIPT_FILE, OurService
from engine.runtimes.docker.building.containers import BuildContainers, Wishes
from engine.runtimes.docker.parts import DockerParts
from engine.runtimes.failures import StartFailed
from engine.runtimes.process.box import Box
from engine.runtimes.process.guardian import Guardian
from engine.runtimes.process.ownership import Owner
from engine.runtimes.process.processes import Launcher
from engine.runtimes.sandbox.levels.bubblewrap import Bubblewrap
from engine.runtimes.sandbox.levels.cgroups import Cgroups
from engine.runtimes.sandbox.sandbox import run_name
from toolagent.contracts.sandbox import SandboxPolicy
from workers.host.sandbox import identities

_ARGV = ("/usr/bin/true",)
_PARAMS = {"message": "hello"}
_COMMAND_S = 60.0
_LABELS = {"ours": "through us", "acting": "through us, with side effects", "bare": "bare"}

Once = Callable[[], Awaitable[object]]


class EngineMissingError(Exception):
    """No Docker engine answers, or it lacks the base image."""


def measure_launches(folder: Path, times: int) -> list[Single]:
    """From asking for a program that does nothing until it, and all of its sandbox, is gone: `launch.ours` beside `launch.bare`."""
    return asyncio.run(_launches(folder, times))


def measure_scripts(service: OurService, times: int) -> list[Single]:
    """A warm call of a script through `POST /run_tool`, beside the script run by hand in the environment made for it.

    `script.ours` has no side effects and a short time-out, so it waits in no queue; `script.acting` may act, so it does.
    """
    before = set(_pythons(service))
    service.call(SCRIPT, **_PARAMS)
    # Made by that call: nothing else made one meanwhile.
    (python,) = set(_pythons(service)) - before
    given, command = json.dumps(_PARAMS), [str(python), str(SCRIPT_FILE)]

    async def called(tool_id: str) -> None:
        await asyncio.to_thread(service.call, tool_id, **_PARAMS)

    async def by_hand() -> None:
        await asyncio.to_thread(subprocess.run, command, input=given.encode(), env=bare_environment(), capture_output=True, check=True)

    ways = {"ours": partial(called, SCRIPT), "acting": partial(called, SCRIPT_ACTING), "bare": by_hand}
    return asyncio.run(_in_turns("script", "script, warm", ways, times))


def measure_commands(folder: Path, times: int) -> list[Single]:
    """A command in a container that is up, through us and through the engine's library alone. Raises EngineMissingError."""
    return asyncio.run(_commands(folder, times))


def _pythons(service: OurService) -> Sequence[Path]:
    return [python for python in service.state.glob("environments/**/bin/python") if python.exists()]


async def _launches(folder: Path, times: int) -> list[Single]:
    async with _launcher(folder) as (launcher, owner):
        level = Bubblewrap(folder / "etc", Cgroups(owner), identities())

        async def boxed() -> None:
            box = Box(run_name("bench"), Path("/"), SandboxPolicy().defaults, environment={"PATH": "/usr/bin:/bin"})
            process = await launcher.launch_boxed(await level.prepare(_ARGV, box), _ARGV, logs=folder / "logs")
            if await process.wait():
                raise RuntimeError(process.stderr.tail())

        async def plain() -> None:
            await (await asyncio.create_subprocess_exec(*_ARGV, stdin=asyncio.subprocess.DEVNULL)).wait()

        return await _in_turns("launch", "launch and end of a program", {"ours": boxed, "bare": plain}, times)


@asynccontextmanager
async def _launcher(folder: Path) -> AsyncGenerator[tuple[Launcher, Owner]]:
    owner = Owner.of_this_process(folder)
    with Guardian(owner) as guardian:
        yield Launcher(owner, guardian, {}, shutil.which("setpriv")), owner


async def _commands(folder: Path, times: int) -> list[Single]:
    try:
        bare = docker.from_env()
    except DockerException as error:
        raise EngineMissingError(str(error)) from error
    parts = DockerParts.by_default(folder, folder / "containers")
    builds = BuildContainers(parts)
    try:
        made = await builds.create(Wishes("bench"), lambda _: None)
        container = bare.containers.get(made.container_id)

        async def ours() -> None:
            await builds.run(made.container_id, _ARGV, _COMMAND_S)

        async def engine() -> None:
            await asyncio.to_thread(container.exec_run, list(_ARGV))

        try:
            return await _in_turns("command", "command in a container", {"ours": ours, "bare": engine}, times)
        finally:
            await builds.destroy(made.container_id)
    except StartFailed as error:
        raise EngineMissingError(error.message) from error
    finally:
        await builds.close()
        parts.engine.close()
        bare.close()


async def _in_turns(name: str, label: str, ways: Mapping[str, Once], times: int) -> list[Single]:
    """Medians in milliseconds; the first of each does not count."""
    took: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(times + 1):
        for way, once in ways.items():
            begin = time.perf_counter()
            await once()
            took[way].append((time.perf_counter() - begin) * 1000)
    return [
        Single(name=f"{name}.{way}", label=f"{label}, {_LABELS[way]}", value=statistics.median(took[way][1:]), unit="ms") for way in ways
    ]
