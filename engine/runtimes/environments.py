"""The Python environment of a uv project: built once from its lock, kept under the lock's hash."""

import asyncio
import hashlib
import os
import platform
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.runtimes.failures import StartFailed
from engine.runtimes.file_lock import locked
from engine.runtimes.processes import Launcher, exit_text
from engine.runtimes.runtime import Progress
from toolagent.contracts.calls import ErrorType

__all__ = ["Environments"]

_COMPLETE = ".complete"
_TOLD_LINES = 20
_WRITE = 0o222
_OWN_ALL = 0o700


@dataclass(frozen=True, slots=True)
class _Plan:
    """Which environment a project needs. `steps` are the commands that build it."""

    folder: Path
    steps: tuple[tuple[str, ...], ...]
    environment: Mapping[str, str]

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def is_complete(self) -> bool:
        # The interpreter is a link, which breaks when the Python it was made from is removed.
        return (self.folder / _COMPLETE).is_file() and self.python.exists()


class Environments:
    """Environments under `folder`, shared by all projects with the same lock. `uv` is the path of its binary.

    `environment` is what uv itself may see (HOME for its settings, its cache, certificates); tools never see it.
    """

    def __init__(
        self,
        folder: Path,
        uv: str,
        launcher: Launcher,
        environment: Mapping[str, str],
        *,
        python: Path | None = None,
        build_timeout_s: float = 600.0,
    ) -> None:
        self._folder, self._uv, self._launcher = folder, uv, launcher
        self._environment = {**environment, "UV_LINK_MODE": "copy", "UV_NO_PROGRESS": "1"}
        self._python = python or Path(sys.executable)
        self._build_timeout_s = build_timeout_s

    async def python_of(self, project: Path, tool_id: str, progress: Progress) -> Path:
        """The interpreter of the project's environment, which is built first if need be.

        Raises StartFailed (`dependency_error`) when there is no lock or the build fails.
        """
        plan = await asyncio.to_thread(self._plan, project, tool_id)
        if plan.is_complete:
            return plan.python
        progress(f"waiting for the environment of {tool_id}")
        async with locked(plan.folder.with_suffix(".lock")):
            if not plan.is_complete:
                progress(f"building the environment of {tool_id}")
                await self._build(plan, tool_id, project)
        return plan.python

    def _plan(self, project: Path, tool_id: str) -> _Plan:
        self._folder.mkdir(parents=True, exist_ok=True)
        requirements, lock = project / "requirements.lock", project / "uv.lock"
        if requirements.is_file():
            folder = self._folder_of(b"requirements", requirements.read_bytes())
            sync = (self._uv, "pip", "sync", "--require-hashes", "--compile-bytecode", "--python", str(folder / "bin" / "python"))
            return _Plan(folder, (self._venv(folder), (*sync, str(requirements))), {})
        if lock.is_file():
            # Such an environment may hold the project itself, so it is the project's own.
            pyproject = project / "pyproject.toml"
            text = pyproject.read_bytes() if pyproject.is_file() else b""
            folder = self._folder_of(b"uv", lock.read_bytes(), text, str(project).encode())
            sync = (
                self._uv,
                "sync",
                "--frozen",
                "--no-dev",
                "--compile-bytecode",
                "--python",
                str(self._python),
                "--project",
                str(project),
            )
            return _Plan(folder, (self._venv(folder), sync), {"UV_PROJECT_ENVIRONMENT": str(folder)})
        raise StartFailed(
            ErrorType.DEPENDENCY_ERROR,
            f"The tool {tool_id!r} has no lock. Write one in its folder: "
            "uv pip compile --universal --generate-hashes pyproject.toml -o requirements.lock",
            {"looked_for": ["requirements.lock", "uv.lock"]},
        )

    def _folder_of(self, *parts: bytes) -> Path:
        digest = hashlib.sha256()
        for part in (*parts, platform.python_version().encode(), str(self._python).encode()):
            digest.update(len(part).to_bytes(8, "big") + part)
        return self._folder / digest.hexdigest()[:24]

    def _venv(self, folder: Path) -> tuple[str, ...]:
        return (self._uv, "venv", "--no-project", "--python", str(self._python), str(folder))

    async def _build(self, plan: _Plan, tool_id: str, project: Path) -> None:
        # Without its marker a folder is what a build left that was ended in the middle.
        await asyncio.to_thread(_remove, plan.folder)
        try:
            async with asyncio.timeout(self._build_timeout_s):
                for step in plan.steps:
                    await self._run(step, plan, tool_id, project)
        except TimeoutError:
            raise StartFailed(
                ErrorType.DEPENDENCY_ERROR,
                f"Building the environment of {tool_id!r} took longer than {self._build_timeout_s:g} s.",
                {"timeout_s": self._build_timeout_s},
            ) from None
        await asyncio.to_thread((plan.folder / _COMPLETE).touch)
        # It is shared: no tool should change another's by accident.
        await asyncio.to_thread(_make_read_only, plan.folder)

    async def _run(self, argv: Sequence[str], plan: _Plan, tool_id: str, project: Path) -> None:
        try:
            process = await self._launcher.launch(
                argv,
                folder=project,
                logs=plan.folder.with_suffix(".build"),
                environment={**self._environment, **plan.environment},
            )
        except OSError as error:
            raise StartFailed(ErrorType.DEPENDENCY_ERROR, f"uv cannot be run: {error}", {"uv": self._uv}) from error
        try:
            code = await process.wait()
        finally:
            await process.kill()
        if code != 0:
            raise StartFailed(
                ErrorType.DEPENDENCY_ERROR,
                f"The environment of {tool_id!r} could not be built: uv {exit_text(code)}.",
                {"command": list(argv), "exit_code": code, "stderr": "\n".join(process.stderr.last_lines(_TOLD_LINES))},
            )


def _make_read_only(folder: Path) -> None:
    for inside, folders, files in os.walk(folder, topdown=False):
        for path in (*(Path(inside, name) for name in (*folders, *files)), Path(inside)):
            # A link may lead out, to the interpreter itself.
            if not path.is_symlink():
                path.chmod(path.stat().st_mode & ~_WRITE)


def _remove(folder: Path) -> None:
    for inside, _, _ in os.walk(folder):
        Path(inside).chmod(_OWN_ALL)
    shutil.rmtree(folder, ignore_errors=True)
