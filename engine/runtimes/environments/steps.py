"""The commands that install what a script depends on. They run in the environment's folder, in the order given."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.runtimes.environments.dependencies import INLINE, Dependencies, Kind
from engine.runtimes.environments.programs import Program, Programs

_EXPORTED = "exported.txt"
_NO_SCRIPTS = ("--ignore-scripts",)


@dataclass(frozen=True, slots=True)
class EnvironmentFolder:
    """Where the parts of an environment lie; `cache`, `home` and `scratch` are for its making only."""

    root: Path

    @property
    def project(self) -> Path:
        """What the installer reads, and where it puts `node_modules`."""
        return self.root / "project"

    @property
    def python(self) -> Path:
        return self.root / "env" / "bin" / "python"

    @property
    def packages(self) -> Path:
        """Of Python; its version is in the path."""
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
        """For the installers: their caches are this environment's own, so that none can spoil another's."""
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
    """`programs` are those it needs besides the system's; `without_builds` are the options with which no package's code is run."""

    argv: Sequence[str]
    programs: Sequence[Program]
    needs_index: bool = True
    without_builds: Sequence[str] = ()


def steps_of(dependencies: Dependencies, folder: EnvironmentFolder, programs: Programs) -> tuple[Step, ...]:
    """Raises ScriptFailure (`UnavailableError`, of a Python `DependencyError`) when a program that is needed is not on this host."""
    return _BY_KIND[dependencies.kind](dependencies, folder, programs)


def _python(*arguments: str, lock: Sequence[str] = ()) -> Callable[[Dependencies, EnvironmentFolder, Programs], tuple[Step, ...]]:
    """A bare environment, and what is installed into it: by `uv pip …`, from what `lock` makes of a lock if there is one."""

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


def _npm(command: str, *options: str) -> Callable[[Dependencies, EnvironmentFolder, Programs], tuple[Step, ...]]:
    quiet = ("--no-audit", "--no-fund", "--no-progress", "--loglevel=error", "--omit=dev")

    def steps(_: Dependencies, __: EnvironmentFolder, programs: Programs) -> tuple[Step, ...]:
        node = programs.require("Node.js", programs.node)
        npm = programs.require("npm", Program(programs.npm) if programs.npm else None)
        return (Step((str(node.file), str(npm.file), command, *quiet, *options), (node, npm), True, _NO_SCRIPTS),)

    return steps


def _bun(*options: str) -> Callable[[Dependencies, EnvironmentFolder, Programs], tuple[Step, ...]]:
    def steps(_: Dependencies, __: EnvironmentFolder, programs: Programs) -> tuple[Step, ...]:
        bun = programs.require("Bun", programs.bun)
        return (Step((str(bun.file), "install", "--production", "--no-progress", "--no-summary", *options), (bun,), True, _NO_SCRIPTS),)

    return steps


_bare = _python()
_BY_KIND: Mapping[Kind, Callable[[Dependencies, EnvironmentFolder, Programs], tuple[Step, ...]]] = {
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
