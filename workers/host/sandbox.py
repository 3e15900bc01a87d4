"""The sandbox of this host."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import cast

import structlog
from pydantic import ConfigDict

from engine.runtimes.docker.serving.sandbox_level import ContainerLevel
from engine.runtimes.docker_engine.engine import Engine
from engine.runtimes.process.box import Level
from engine.runtimes.process.ownership import Owner
from engine.runtimes.process.processes import Launcher
from engine.runtimes.sandbox.identities import DEFAULT_UIDS, Identities, mapped
from engine.runtimes.sandbox.levels.bubblewrap import Bubblewrap
from engine.runtimes.sandbox.levels.cgroups import Cgroups
from engine.runtimes.sandbox.levels.rlimits import RLimits
from engine.runtimes.sandbox.levels.system_files import shown_to_all
from engine.runtimes.sandbox.sandbox import Sandbox, SandboxRefused
from toolagent.contracts.sandbox import SandboxLevel, SandboxLimits, SandboxPolicy
from workers.failures import CannotRun
from workers.host.policy_files import said_in, understood
from workers.settings.tools import SandboxSettings
from workers.state.directory import StateDirectory

_SETTING = "TOOL_AGENT_SANDBOX_POLICY"
_PAGE = "docs/security.md, The policy"

_log = structlog.stdlib.get_logger(__name__)


class _Policy(SandboxPolicy):
    """The policy in a file, where unknown fields are errors."""

    model_config = ConfigDict(extra="forbid")


class _Limits(SandboxLimits):
    """Limits in a file, where unknown fields are errors."""

    model_config = ConfigDict(extra="forbid")


def identities(uids: range = DEFAULT_UIDS, own: Path | None = None) -> Identities | None:
    """The users that tools run as; None if they run as ours. `own` as in `Identities`. Raises CannotRun if the users cannot be had."""
    if os.geteuid() != 0:
        return None
    if not (there := mapped(uids)):
        raise CannotRun(f"TOOL_AGENT_SANDBOX_UIDS is {uids[0]}-{uids[-1]}, and this container has none of these users. Name others.")
    try:
        return Identities(there, own=own)
    except OSError as error:
        raise CannotRun(f"The folder where services of this machine share out users cannot be had: {error}") from error


def policy_of(settings: SandboxSettings) -> SandboxPolicy:
    """The policy, with default limits where its file names none. Raises CannotRun if the file cannot be read or is not valid."""
    path, usual = settings.sandbox_policy, SandboxPolicy()
    if path is None:
        return usual
    said = said_in(_SETTING, path)
    policy = understood(_SETTING, path, _Policy, said, _PAGE)
    limits: dict[str, SandboxLimits] = {}
    for name in ("defaults", "ceilings"):
        named: object = cast("dict[str, object]", said).get(name, {})
        limits[name] = understood(_SETTING, path, _Limits, named, _PAGE, (name,)).or_else(getattr(usual, name))
    return SandboxPolicy.model_validate(policy.model_copy(update=limits).model_dump(by_alias=True))


async def sandbox_of(
    levels: Sequence[SandboxLevel],
    policy: SandboxPolicy,
    state: StateDirectory,
    owner: Owner,
    launcher: Launcher,
    engine: Engine,
    users: Identities | None,
) -> Sandbox | str:
    """The sandbox of the first level that works; otherwise the reason, so that tools that need no sandbox still run."""
    if (outer := shown_to_all(state.root)) is not None:
        return _none(f"No tool's code is run: the state directory {state.root} lies in {outer}, which every tool sees. Name another.")
    made = [_MAKERS[level](state.root / "sandbox", owner, engine, users) for level in levels]
    for level in made:
        await level.sweep()
    try:
        return await Sandbox.choose(made, policy, launcher, state.root / "sandbox" / "probe")
    except SandboxRefused as refusal:
        return _none(str(refusal))


def _none(reason: str) -> str:
    _log.warning("no_sandbox", reason=reason, effect="local tools and scripts are unavailable")
    return reason


_MAKERS: Mapping[SandboxLevel, Callable[[Path, Owner, Engine, Identities | None], Level]] = {
    SandboxLevel.BUBBLEWRAP: lambda own, owner, _, users: Bubblewrap(own / "etc", Cgroups(owner), users),
    SandboxLevel.DOCKER: lambda own, owner, engine, users: ContainerLevel(own / "etc", engine, owner, users),
    SandboxLevel.RLIMITS: lambda own, owner, _, users: RLimits(own / "rlimits", owner, Cgroups(owner), users),
}
