"""The commands that install dependencies.

They run in order, in the environment's folder.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from engine.runtimes.environments.dependencies import INLINE, Dependencies, Kind
from engine.runtimes.environments.programs import Program, Programs

_EXPORTED = "exported.txt"
_NO_SCRIPTS = ("--ignore-scripts",)


@dataclass(frozen=True, slots=True)
class EnvironmentFolder:
    """The layout of an environment; `cache`, `home` and `scratch` exist during the installation only."""

    root: Path

    @property
    def project(self) -> Path:
        """The installer's input, and the place of `node_modules`."""
        return self.root / "project"

    @property
    def python(self) -> Path:
        return self.root / "env" / "bin" / "python"

    @property
    def packages(self) -> Path:
        """The Python packages; the path contains the version."""
        return next((self.root / "env" / "lib").glob("python*/site-packages"), self.root / "env" / "lib")

    @property
    def modules(self) -> Path:
        return self.project / "node_modules"

    @property
    def scratch(self) -> Path:
        return self.root / "scratch"

    @property
    def passing(self) -> tuple[Path, ...]:
        return self.root / "cache", self.root / "home", self.scratch

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables of the installers. Each environment has its own caches, so that none can damage another's."""
        cache, home, scratch = map(str, self.passing)
        return {
            "HOME": home,
            "TMPDIR": scratch,
            "UV_CACHE_DIR": f"{cache}/uv",
            "UV_LINK_MODE": "hardlink",
            "UV_NO_PROGRESS": "1",
            "UV_PYTHON_DOWNLOADS": "never",
            "npm_config_cache": f"{cache}/npm",
            "npm_config_update_notifier": "false",
            "BUN_INSTALL_CACHE_DIR": f"{cache}/bun",
            "BUN_INSTALL": f"{home}/.bun",
            "DO_NOT_TRACK": "1",
            "PUPPETEER_SKIP_DOWNLOAD": "1",
            "PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD": "1",
        }


@dataclass(frozen=True, slots=True)
class Step:
    """`programs` are those outside the system; `without_builds` are options that prevent running code of packages."""

    argv: Sequence[str]
    programs: Sequence[Program]
    needs_index: bool = True
    without_builds: Sequence[str] = ()


def steps_of(dependencies: Dependencies, folder: EnvironmentFolder, programs: Programs) -> tuple[Step, ...]:
    """Raises ScriptFailure if a program is missing: `UnavailableError`, for a Python `DependencyError`."""
    return _BY_KIND[dependencies.kind](dependencies, folder, programs)


Steps: TypeAlias = Callable[[Dependencies, EnvironmentFolder, Programs], tuple[Step, ...]]


def _python(*arguments: str, lock: Sequence[str] = ()) -> Steps:
    """The steps `uv venv`, then with `lock` the export of the lock, then `uv pip …`."""

    def steps(dependencies: Dependencies, folder: EnvironmentFolder, programs: Programs) -> tuple[Step, ...]:
        uv, python = str(programs.uv.file), ("--python", str(folder.python))
        interpreter = programs.python_of(dependencies.python)
        there = [programs.uv, interpreter]
        made = [Step((uv, "venv", "--no-project", "--python", str(interpreter.file), str(folder.root / "env")), there, False)]
        if lock:
            made.append(Step((uv, *lock, "--frozen", "--offline", "--no-header", "--quiet", "--output-file", _EXPORTED), there, False))
        if arguments:
            made.append(Step((uv, "pip", *arguments[:1], "--compile-bytecode", *python, *arguments[1:]), there, True, ("--no-build",)))
        return tuple(made)

    return steps


def _nothing(dependencies: Dependencies, folder: EnvironmentFolder, programs: Programs) -> tuple[Step, ...]:
    return _bare(dependencies, folder, programs) if dependencies.language == "python" else ()


def _npm(command: str, *options: str) -> Steps:
    quiet = ("--no-audit", "--no-fund", "--no-progress", "--loglevel=error", "--omit=dev")

    def steps(_: Dependencies, __: EnvironmentFolder, programs: Programs) -> tuple[Step, ...]:
        node = programs.require("Node.js", programs.node)
        npm = programs.require("npm", Program(programs.npm) if programs.npm else None)
        return (Step((str(node.file), str(npm.file), command, *quiet, *options), (node, npm), True, _NO_SCRIPTS),)

    return steps


def _bun(*options: str) -> Steps:
    def steps(_: Dependencies, __: EnvironmentFolder, programs: Programs) -> tuple[Step, ...]:
        bun = programs.require("Bun", programs.bun)
        return (Step((str(bun.file), "install", "--production", "--no-progress", "--no-summary", *options), (bun,), True, _NO_SCRIPTS),)

    return steps


_bare = _python()
_BY_KIND: Mapping[Kind, Steps] = {
    Kind.NOTHING: _nothing,
    Kind.INLINE: _python("install", "-r", INLINE),
    Kind.INLINE_LOCK: _python("sync", "--require-hashes", _EXPORTED, lock=("export", "--script", INLINE)),
    Kind.REQUIREMENTS_LOCK: _python("sync", "--require-hashes", "requirements.lock"),
    Kind.REQUIREMENTS: _python("install", "-r", "requirements.txt"),
    Kind.UV_LOCK: _python("sync", "--require-hashes", _EXPORTED, lock=("export", "--no-dev", "--no-emit-project")),
    Kind.PYPROJECT: _python("install", "-r", "pyproject.toml"),
    Kind.NPM_LOCK: _npm("ci"),
    Kind.NPM: _npm("install", "--no-package-lock"),
    Kind.BUN_LOCK: _bun("--frozen-lockfile"),
    Kind.BUN: _bun("--no-save"),
}
