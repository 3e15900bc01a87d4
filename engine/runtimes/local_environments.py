"""The environment of a project that is started as `main.py`."""

import asyncio
from pathlib import Path

from engine.runtimes.failures import StartFailed
from engine.runtimes.runtime import Progress
from engine.runtimes.scripts.dependencies import Dependencies, Kind, dependencies_of
from engine.runtimes.scripts.environments import Environment, ScriptEnvironments
from engine.runtimes.scripts.failures import ScriptFailure
from engine.runtimes.scripts.paths import Script
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.sources import ScriptLanguage

__all__ = ["insist_on_main", "project_environment"]

_NOTHING = Dependencies(ScriptLanguage.PYTHON, Kind.REQUIREMENTS_LOCK, {"requirements.lock": b""})
"""A project that says nothing of what it depends on has Python's own library."""


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


def insist_on_main(project: Path, tool_id: str, host_dir: str) -> None:
    """Raises StartFailed."""
    if not (main := project / "main.py").is_file():
        raise StartFailed(
            ErrorType.DEPENDENCY_ERROR,
            f"The tool {tool_id!r} has no {main.name} in {host_dir!r}.",
            {"host_dir": host_dir, "missing": main.name if project.is_dir() else host_dir},
        )
