"""Boxes in which programs work on what is to become a tool, and their way to the package index."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from engine.making.failures import LockFailed
from engine.runtimes.environments.execution import Execution, Executor, Order
from engine.runtimes.environments.indexes import Index, Installer
from engine.runtimes.process.box import Box, Mount, no_network
from engine.runtimes.sandbox.package_indexes import IndexesUnknown
from engine.runtimes.sandbox.sandbox import run_name
from toolagent.contracts.manifest import SecurityContext
from toolagent.contracts.sandbox import SandboxLimits
from toolagent.contracts.sources import ScriptLanguage


def boxed(executor: Executor, name: str, folder: Path, limits: SandboxLimits, mounts: Sequence[Mount], variables: Mapping[str, str]) -> Box:
    """With as much of the limits as the policy of this host grants. Raises ScriptFailure (`UnavailableError`)."""
    granted = executor.sandbox.grant(SecurityContext(limits=limits)).enforced.limits
    return Box(run_name(name), folder, granted, tuple(mounts), variables)


async def index_of(installer: Installer, language: ScriptLanguage) -> Index:
    """Raises LockFailed."""
    try:
        return await installer.indexes(language)
    except IndexesUnknown as error:
        raise LockFailed(f"The package index is not known: {error}") from error


async def run_with_index(
    executor: Executor, installer: Installer, box: Box, argv: Sequence[str], index: Index, wall_s: float, logs: Path
) -> Execution:
    """It reaches the hosts of the index alone. Raises ScriptFailure."""
    network = installer.network if index.hosts else no_network
    async with network(box, argv, index.hosts) as opened:
        return await executor.run(Order(opened.argv, opened.box, wall_s, logs))
