"""What a project is started as: `main.py` or `main.mjs`, with its locked environment."""

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
"""A project that says nothing of what it depends on has Python's own library."""

_NODE_MAIN = "main.mjs"


@dataclass(frozen=True, slots=True)
class LocalProgram:
    """Fields of a BoxedRun; `command` wants the port behind it."""

    command: tuple[str, ...]
    environment: Environment
    mounts: tuple[Mount, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict[str, str])


async def local_program(environments: ScriptEnvironments, project: Path, tool_id: str, host_dir: str, progress: Progress) -> LocalProgram:
    """Raises StartFailed."""
    if await asyncio.to_thread(_is_of_node, project):
        return await _of_node(environments, project, tool_id, progress)
    await asyncio.to_thread(require_main, project, tool_id, host_dir)
    environment = await project_environment(environments, project, tool_id, progress)
    return LocalProgram((str(environment.folder.python), "main.py"), environment)


async def project_environment(environments: ScriptEnvironments, project: Path, tool_id: str, progress: Progress) -> Environment:
    """Of its lock, else of `requirements.txt` or `pyproject.toml`, whose versions are then chosen when it is installed here.

    Raises StartFailed (`dependency_error`).
    """
    try:
        dependencies = await asyncio.to_thread(dependencies_of, Script(project / "main.py", "main.py"), ScriptLanguage.PYTHON)
        wanted = _NOTHING if dependencies.kind is Kind.NOTHING else dependencies
        return await environments.ensure(wanted, tool_id, progress)
    except ScriptFailure as failure:
        raise failure.as_start_failure from failure


def require_main(project: Path, tool_id: str, host_dir: str) -> None:
    """Raises StartFailed."""
    if not (main := project / "main.py").is_file():
        raise StartFailed(
            ErrorType.DEPENDENCY_ERROR,
            f"The tool {tool_id!r} has no {main.name} in {host_dir!r}.",
            {"host_dir": host_dir, "missing": main.name if project.is_dir() else host_dir},
        )


async def _of_node(environments: ScriptEnvironments, project: Path, tool_id: str, progress: Progress) -> LocalProgram:
    try:
        node = environments.programs.require("Node.js", environments.programs.node)
        dependencies = await asyncio.to_thread(dependencies_of, Script(project / _NODE_MAIN, _NODE_MAIN), ScriptLanguage.NODEJS)
        environment = await environments.ensure(dependencies, tool_id, progress)
    except ScriptFailure as failure:
        raise failure.as_start_failure from failure
    # Node looks in every folder above a file, and the project itself may have no such folder to mount it on.
    modules = (Mount(environment.modules, project.parent / "node_modules"),) if environment.modules else ()
    variables = {"PATH": f"{node.file.parent}:/usr/bin:/bin"}
    return LocalProgram((str(node.file), _NODE_MAIN), environment, (*node.mounts, *modules), variables)


def _is_of_node(project: Path) -> bool:
    return (project / _NODE_MAIN).is_file() and not (project / "main.py").is_file()
