"""What a server is started as: its project, its environment, and the program that its command names."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from engine.runtimes.environments.dependencies import locked_dependencies
from engine.runtimes.environments.environments import Environment, ScriptEnvironments
from engine.runtimes.environments.failures import ScriptFailure
from engine.runtimes.failures import StartFailed
from engine.runtimes.local.boxed_runs import BoxedRuns
from engine.runtimes.local.environments import project_environment, require_main
from engine.runtimes.process.box import Mount
from engine.runtimes.runtime import Progress
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.sources import McpSource

_MAIN = "main.py"
_PYTHONS = ("python", "python3")
_SYSTEM_PATH = "/usr/bin:/bin"


@dataclass(frozen=True, slots=True)
class ServerProgram:
    """Fields of a BoxedRun."""

    command: tuple[str, ...]
    project: Path | None = None
    environment: Environment | None = None
    mounts: tuple[Mount, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict[str, str])


async def program_of(
    source: McpSource, tool_id: str, boxed: BoxedRuns, environments: ScriptEnvironments, progress: Progress
) -> ServerProgram:
    """Raises StartFailed."""
    if source.host_dir is None and source.content is None:
        return _of_the_machine(source, tool_id, environments)
    host_dir = source.host_dir or ""
    project = await boxed.project(tool_id, host_dir, source.content, progress)
    if not source.command:
        await asyncio.to_thread(require_main, project, tool_id, host_dir)
        environment = await project_environment(environments, project, tool_id, progress)
        return ServerProgram((str(environment.folder.python), _MAIN), project, environment)
    if not await asyncio.to_thread(project.is_dir):
        details = {"host_dir": host_dir, "missing": host_dir}
        raise StartFailed(ErrorType.DEPENDENCY_ERROR, f"The folder {host_dir!r} of the tool {tool_id!r} is not there.", {**details})
    try:
        dependencies = await asyncio.to_thread(locked_dependencies, project)
        environment = await environments.ensure(dependencies, tool_id, progress) if dependencies else None
    except ScriptFailure as failure:
        raise failure.as_start_failure from failure
    found = await asyncio.to_thread(_found, source.command, project, environment, environments)
    # A package of an index begins in its home, where it may write: its project holds nothing but locks.
    return found if source.server is None else replace(found, project=None)


def _of_the_machine(source: McpSource, tool_id: str, environments: ScriptEnvironments) -> ServerProgram:
    if not source.command:
        message = f"The mcp source of {tool_id!r} names no server: give it `url`, `host_dir`, or `command`."
        raise StartFailed(ErrorType.VALIDATION_ERROR, message, {"field": "url"})
    return _found(source.command, None, None, environments)


def _found(command: tuple[str, ...], project: Path | None, environment: Environment | None, known: ScriptEnvironments) -> ServerProgram:
    first, *others = command
    node = known.programs.node
    needs_node = node is not None and (first == "node" or (environment is not None and environment.modules is not None))
    mounts: list[Mount] = list(node.mounts) if node is not None and needs_node else []
    folders: list[Path] = [node.file.parent] if node is not None and needs_node else []
    if environment is not None and environment.modules is not None and project is not None:
        # Node looks in every folder above a file, and the project itself may have no such folder to mount it on.
        modules = project.parent / "node_modules"
        mounts.append(Mount(environment.modules, modules))
        folders.insert(0, modules / ".bin")
        if (environment.modules / ".bin" / first).exists():
            first = str(modules / ".bin" / first)
    elif environment is not None:
        programs = environment.folder.python.parent
        folders.insert(0, programs)
        if first in _PYTHONS:
            first = str(environment.folder.python)
        elif "/" not in first and (programs / first).is_file():
            first = str(programs / first)
    if first == "node" and node is not None:
        first = str(node.file)
    path = ":".join((*map(str, folders), _SYSTEM_PATH))
    return ServerProgram((first, *others), project, environment, tuple(mounts), {"PATH": path})
