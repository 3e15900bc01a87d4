"""Runs programs that make tools in the sandbox, with access to the package index, and reads what they leave."""

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

_FRAME = " \t╭╮╰╯─│┌┐└┘━┃"


def boxed(executor: Executor, name: str, folder: Path, limits: SandboxLimits, mounts: Sequence[Mount], variables: Mapping[str, str]) -> Box:
    """A box with the part of the limits that this host's policy grants. Raises ScriptFailure (`UnavailableError`)."""
    granted = executor.sandbox.grant(SecurityContext(limits=limits)).enforced.limits
    return Box(run_name(name), folder, granted, tuple(mounts), {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **variables})


async def index_of(installer: Installer, language: ScriptLanguage) -> Index:
    """Raises LockFailed."""
    try:
        return await installer.indexes(language)
    except IndexesUnknown as error:
        raise LockFailed(f"The package index is not known: {error}") from error


async def run_with_index(
    executor: Executor, installer: Installer, box: Box, argv: Sequence[str], index: Index, wall_s: float, logs: Path
) -> Execution:
    """Runs a program that can reach the hosts of the index only. Raises ScriptFailure."""
    network = installer.network if index.hosts else no_network
    async with network(box, argv, index.hosts) as opened:
        return await executor.run(Order(opened.argv, opened.box, wall_s, logs))


def last_line(done: Execution) -> str:
    """The last line of stderr that is not blank; empty if there is none."""
    return last_line_of(done.stderr.decode(errors="replace"))


def last_line_of(text: str) -> str:
    """The last line that says something; empty if there is none. A progress bar ends its lines with `\\r`, typer frames its errors."""
    lines = (line.strip(_FRAME) for line in reversed(text.splitlines()))
    return next((line for line in lines if line), "")


def left_in(path: Path, most: int) -> bytes:
    """At most `most` + 1 bytes of a file that a program left; empty if there is no regular file. Raises OSError. Blocks."""
    if path.is_symlink() or not path.is_file():
        return b""
    with path.open("rb") as file:
        return file.read(most + 1)
