"""The sandbox of this host: its level, and what it grants to tools."""

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.runtimes.process.box import Box, Level, LevelUnavailable
from engine.runtimes.process.launching import launched
from engine.runtimes.process.processes import Launcher, Process, exit_text
from toolagent.contracts.manifest import SecurityContext
from toolagent.contracts.sandbox import Difference, SandboxAccount, SandboxGrant, SandboxLevel, SandboxPolicy
from toolagent_service.calls.sandbox import granted

_PROBE_S = 10.0
_TOLD = 500
_ORDER = tuple(SandboxLevel)


class SandboxRefused(Exception):
    """No level that the policy accepts works here, so nothing may run. The message gives the reason for each level."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What a tool may use here, and the account of it."""

    enforced: SandboxGrant
    account: SandboxAccount


def run_name(tool_id: str) -> str:
    """A unique name for one run, valid for a cgroup, a socket and a container."""
    return f"{tool_id.replace(':', '-').replace('_', '-')[:40]}-{secrets.token_hex(4)}"


class Sandbox:
    """One level, chosen once. Made by `choose`."""

    def __init__(self, level: Level, policy: SandboxPolicy, not_chosen: tuple[Difference, ...] = ()) -> None:
        self.level, self.policy = level, policy
        self._differences = (*not_chosen, *level.differences())

    @classmethod
    async def choose(cls, levels: Sequence[Level], policy: SandboxPolicy, launcher: Launcher, logs: Path) -> "Sandbox":
        """The first level that the policy accepts and that works in a trial. Raises SandboxRefused."""
        failed: list[Difference] = []
        for level in levels:
            if policy.at_least is not None and _ORDER.index(level.level) > _ORDER.index(policy.at_least):
                failed.append(_not_used(level, f"the policy demands at least {policy.at_least.value}"))
                continue
            try:
                await probe(level, policy, launcher, logs)
            except LevelUnavailable as error:
                failed.append(_not_used(level, str(error)))
            else:
                return cls(level, policy, tuple(failed))
        told = "; ".join(f"{one.requested}: {one.reason}" for one in failed)
        raise SandboxRefused(f"No sandbox works here, so no tool's code is run ({told or 'none is allowed'}).")

    def grant(self, context: SecurityContext) -> Grant:
        """What a tool with this security context may use."""
        asking = context.asked
        enforced, differences = granted(asking, self.policy)
        return Grant(
            enforced,
            SandboxAccount(level=self.level.level, requested=asking, enforced=enforced, differences=(*differences, *self._differences)),
        )


async def probe(level: Level, policy: SandboxPolicy, launcher: Launcher, logs: Path) -> None:
    """Launch a program once, the way tools are launched. Raises LevelUnavailable."""
    box = Box(run_name("probe"), Path("/"), policy.defaults, environment={"PATH": "/usr/bin:/bin"})
    try:
        async with asyncio.timeout(_PROBE_S):
            process = await launched(_launch(level, box, launcher, logs), Process.kill)
            try:
                code = await process.wait()
            finally:
                await process.kill()
    except TimeoutError as error:
        raise LevelUnavailable(f"a first try had not ended after {_PROBE_S:g} s") from error
    except OSError as error:
        raise LevelUnavailable(f"a first try failed: {error}") from error
    if code != 0:
        raise LevelUnavailable(f"a first try {exit_text(code)}: {process.stderr.tail().strip()[-_TOLD:]}")


async def _launch(level: Level, box: Box, launcher: Launcher, logs: Path) -> Process:
    return await launcher.launch_boxed(await level.prepare(["/usr/bin/true"], box), ["/usr/bin/true"], logs=logs)


def _not_used(level: Level, reason: str) -> Difference:
    return Difference(item="level", requested=level.level.value, reason=reason)
