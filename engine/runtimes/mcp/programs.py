"""How a server is started: its project, its environment, and the program that its command names."""

import asyncio
from dataclasses import replace
from pathlib import Path

from engine.runtimes.environments.dependencies import locked_dependencies
from engine.runtimes.environments.environments import Environment, ScriptEnvironments
from engine.runtimes.environments.failures import ScriptFailure
from engine.runtimes.failures import StartFailed
from engine.runtimes.local.boxed_runs import BoxedRuns
from engine.runtimes.local.environments import Program, python_program
from engine.runtimes.process.box import Mount
from engine.runtimes.runtime import Progress
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.sources import McpSource

_PYTHONS = ("python", "python3")
_SYSTEM_PATH = "/usr/bin:/bin"


async def program_of(source: McpSource, tool_id: str, boxed: BoxedRuns, environments: ScriptEnvironments, progress: Progress) -> Program:
    """Raises StartFailed."""
    if source.host_dir is None and source.content is None:
        return _of_the_machine(source, tool_id, environments)
    host_dir = source.host_dir or ""
    project = await boxed.project(tool_id, host_dir, source.content, progress)
    if not source.command:
        return await python_program(environments, project, tool_id, host_dir, progress)
    if not await asyncio.to_thread(project.is_dir):
        message = f"The folder {host_dir!r} of the tool {tool_id!r} is not there."
        raise StartFailed(ErrorType.DEPENDENCY_ERROR, message, {"host_dir": host_dir, "missing": host_dir})
    try:
        dependencies = await asyncio.to_thread(locked_dependencies, project)
        environment = await environments.ensure(dependencies, tool_id, progress) if dependencies else None
    except ScriptFailure as failure:
        raise failure.as_start_failure from failure
    found = await asyncio.to_thread(_found, source.command, project, environment, environments)
    # A package of an index starts in its home, where it may write: its project holds only locks.
    return found if source.server is None else replace(found, project=None)


def _of_the_machine(source: McpSource, tool_id: str, environments: ScriptEnvironments) -> Program:
    if not source.command:
        message = f"The mcp source of {tool_id!r} names no server: give it `url`, `host_dir`, or `command`."
        raise StartFailed(ErrorType.VALIDATION_ERROR, message, {"field": "url"})
    return _found(source.command, None, None, environments)


def _found(command: tuple[str, ...], project: Path | None, environment: Environment | None, known: ScriptEnvironments) -> Program:
    first, *others = command
    modules = environment.modules if environment is not None else None
    node = known.programs.node if first == "node" or modules is not None else None
    mounts: list[Mount] = [*node.mounts] if node is not None else []
    folders: list[Path] = [node.file.parent] if node is not None else []
    if modules is not None and project is not None:
        # Node looks in every folder above a file. The project itself may lack the folder that a mount needs.
        mounted = project.parent / "node_modules"
        mounts.append(Mount(modules, mounted))
        folders.insert(0, mounted / ".bin")
        if (modules / ".bin" / first).exists():
            first = str(mounted / ".bin" / first)
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
    return Program((first, *others), project, environment, tuple(mounts), {"PATH": path})
