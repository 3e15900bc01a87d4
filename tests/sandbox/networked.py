"""Real bubblewrap boxes with network access, for the tests of proxy, egress and forwarder."""

import contextlib
import shutil
import sys
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from engine.network.addresses import Resolve, resolve
from engine.network.proxy import ProxyLimits
from engine.runtimes.process.box import Box, Mount
from engine.runtimes.process.processes import Launcher, Process
from engine.runtimes.sandbox.egress import Egress, Opening, SandboxNetwork
from engine.runtimes.sandbox.levels.bubblewrap import Bubblewrap
from engine.runtimes.sandbox.sandbox import run_name
from tests.parts import bubblewrap, launching
from toolagent.contracts.sandbox import SandboxPolicy

__all__ = ["Boxes", "Ended", "Networked", "Resolver", "boxes"]

_LIMITS = SandboxPolicy().defaults
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": "/tmp"}  # noqa: S108 - the sandbox's own


class Resolver:
    """A fake resolver: gives its answers in turn, and repeats the last one."""

    def __init__(self, **answers: Sequence[Sequence[str]]) -> None:
        self.answers = {name.replace("_", "."): list(given) for name, given in answers.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        with contextlib.suppress(ValueError):
            return [str(ip_address(host))]
        if host not in self.answers:
            return await resolve(host, port)
        given = self.answers[host]
        return given.pop(0) if len(given) > 1 else given[0]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program in a box ended."""

    code: int
    out: str
    err: str


@dataclass(slots=True)
class Networked:
    """A box with network access."""

    way: SandboxNetwork
    name: str
    level: Bubblewrap
    launcher: Launcher
    logs: Path
    mounts: tuple[Mount, ...] = ()

    async def launch(self, *argv: str, environment: Mapping[str, str] | None = None) -> Process:
        mounts = (*self.way.mounts, *self.mounts)
        box = Box(self.name, Path("/tmp"), _LIMITS, mounts, {**_ENVIRONMENT, **self.way.environment, **(environment or {})})  # noqa: S108 - the sandbox's own
        command = self.way.argv(argv)
        return await self.launcher.launch_boxed(await self.level.prepare(command, box), command, logs=self.logs / self.name)

    async def run(self, *argv: str, environment: Mapping[str, str] | None = None) -> Ended:
        process = await self.launch(*argv, environment=environment)
        try:
            code = await process.wait()
        finally:
            await process.kill()
        return Ended(code, process.stdout.tail(), process.stderr.tail())

    async def python(self, program: str) -> Ended:
        return await self.run(sys.base_prefix + "/bin/python3", "-I", "-c", program)


@dataclass(slots=True)
class Boxes:
    """Makes boxes."""

    egress: Egress
    level: Bubblewrap
    launcher: Launcher
    state: Path

    @contextlib.asynccontextmanager
    async def opened(self, opening: Opening, *mounts: Mount) -> AsyncGenerator[Networked]:
        name = run_name("net")
        async with self.egress.open(name, opening) as way:
            yield Networked(way, name, self.level, self.launcher, self.state / "logs", mounts)


@contextlib.asynccontextmanager
async def boxes(
    resolve: Resolve = resolve, *, private_hosts: Sequence[str] = (), limits: ProxyLimits | None = None, state: Path | None = None
) -> AsyncGenerator[Boxes]:
    # A short path, as that of a real state directory.
    state = state or Path(tempfile.mkdtemp(prefix="ta-"))
    try:
        with launching(state) as launcher:
            yield Boxes(Egress(state, private_hosts, limits=limits, resolve=resolve), bubblewrap(state), launcher, state)
    finally:
        shutil.rmtree(state, ignore_errors=True)
