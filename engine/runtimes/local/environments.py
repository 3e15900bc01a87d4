"""How a project is started: `main.py` or `main.mjs`, with its locked environment."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from engine.runtimes.environments.dependencies import Dependencies, Kind, Script, dependencies_of
from engine.runtimes.environments.environments import Environment, ScriptEnvironments
from engine.runtimes.environments.failures import ScriptFailure
from engine.runtimes.failures import StartFailed
from engine.runtimes.process.box import Mount
from engine.runtimes.runtime import Progress
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.sources import ScriptLanguage

_NOTHING = Dependencies(ScriptLanguage.PYTHON, Kind.REQUIREMENTS_LOCK, {"requirements.lock": b""})
"""For a project that declares no dependencies: Python's own library."""

_MAIN, _NODE_MAIN = "main.py", "main.mjs"


@dataclass(frozen=True, slots=True)
class Program:
    """Fields of a BoxedRun. A local project gets `--port` appended to its command."""

    command: tuple[str, ...]
    project: Path | None = None
    environment: Environment | None = None
    mounts: tuple[Mount, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict[str, str])


async def local_program(environments: ScriptEnvironments, project: Path, tool_id: str, host_dir: str, progress: Progress) -> Program:
    """Raises StartFailed."""
    if await asyncio.to_thread(_is_of_node, project):
        return await _of_node(environments, project, tool_id, progress)
    return await python_program(environments, project, tool_id, host_dir, progress)


async def python_program(environments: ScriptEnvironments, project: Path, tool_id: str, host_dir: str, progress: Progress) -> Program:
    """`main.py` with the environment of the project's lock, else of `requirements.txt` or `pyproject.toml`.

    Without a lock, versions are chosen at the installation. Raises StartFailed (`dependency_error`).
    """
    await asyncio.to_thread(_require_main, project, tool_id, host_dir)
    try:
        dependencies = await asyncio.to_thread(dependencies_of, Script(project / _MAIN, _MAIN), ScriptLanguage.PYTHON)
        wanted = _NOTHING if dependencies.kind is Kind.NOTHING else dependencies
        environment = await environments.ensure(wanted, tool_id, progress)
    except ScriptFailure as failure:
        raise failure.as_start_failure from failure
    return Program((str(environment.folder.python), _MAIN), project, environment)


def _require_main(project: Path, tool_id: str, host_dir: str) -> None:
    """Raises StartFailed."""
    if not (project / _MAIN).is_file():
        raise StartFailed(
            ErrorType.DEPENDENCY_ERROR,
            f"The tool {tool_id!r} has no {_MAIN} in {host_dir!r}.",
            {"host_dir": host_dir, "missing": _MAIN if project.is_dir() else host_dir},
        )


async def _of_node(environments: ScriptEnvironments, project: Path, tool_id: str, progress: Progress) -> Program:
    try:
        node = environments.programs.require("Node.js", environments.programs.node)
        dependencies = await asyncio.to_thread(dependencies_of, Script(project / _NODE_MAIN, _NODE_MAIN), ScriptLanguage.NODEJS)
        environment = await environments.ensure(dependencies, tool_id, progress)
    except ScriptFailure as failure:
        raise failure.as_start_failure from failure
    # Node looks in every folder above a file. The project itself may lack the folder that a mount needs.
    modules = (Mount(environment.modules, project.parent / "node_modules"),) if environment.modules else ()
    variables = {"PATH": f"{node.file.parent}:/usr/bin:/bin"}
    return Program((str(node.file), _NODE_MAIN), project, environment, (*node.mounts, *modules), variables)


def _is_of_node(project: Path) -> bool:
    return (project / _NODE_MAIN).is_file() and not (project / _MAIN).is_file()
