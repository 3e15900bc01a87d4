"""The dependencies of a script: the files beside it that declare them, and the hash that names its environment."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

from engine.runtimes.environments.failures import ScriptErrorKind, ScriptFailure
from engine.runtimes.environments.pythons import minor_of
from toolagent.contracts.sources import ScriptLanguage

INLINE = "script.py"
"""The file name for uv of metadata written in the script itself."""

PYTHON_VERSION = ".python-version"
"""Names the Python version for the packages, as uv and pyenv read it."""

_MAX_FILE_BYTES = 16 * 1_048_576
_NPM_LOCK = "package-lock.json"
_PYTHON_LOCKS = ("requirements.lock", "uv.lock")
_OPENS = "# /// script"
_ANY_OPENS = re.compile(r"# /// [a-zA-Z0-9-]+")
_CLOSES = "# ///"


class Kind(Enum):
    """The kind of file that declares dependencies. A lock takes precedence over its source."""

    NOTHING = auto()
    INLINE = auto()
    INLINE_LOCK = auto()
    REQUIREMENTS_LOCK = auto()
    REQUIREMENTS = auto()
    UV_LOCK = auto()
    PYPROJECT = auto()
    NPM_LOCK = auto()
    NPM = auto()
    BUN_LOCK = auto()
    BUN = auto()


_LOCKED = frozenset({Kind.INLINE_LOCK, Kind.REQUIREMENTS_LOCK, Kind.UV_LOCK, Kind.NPM_LOCK, Kind.BUN_LOCK})


@dataclass(frozen=True, slots=True)
class Script:
    """`file` is absolute; neither it nor a folder between it and the root is a link. `path` is relative to the root."""

    file: Path
    path: str

    @property
    def folder(self) -> Path:
        return self.file.parent


@dataclass(frozen=True, slots=True)
class Dependencies:
    """`files` are all files that the installer sees, by name. Scripts with the same files share an environment."""

    language: ScriptLanguage
    kind: Kind
    files: Mapping[str, bytes]

    @property
    def named(self) -> str:
        """The deciding file, for messages."""
        return next(iter(self.files), "nothing")

    @property
    def lock(self) -> bytes | None:
        """The lock file; None if there is none."""
        if self.kind not in _LOCKED:
            return None
        return self.files[f"{INLINE}.lock" if self.kind is Kind.INLINE_LOCK else self.named]

    @property
    def python(self) -> str:
        """The requested minor version of Python; empty: the worker's own."""
        return minor_of(self.files.get(PYTHON_VERSION, b"").decode(errors="replace"))

    def digest(self, stamp: str) -> str:
        """The name of the environment. `stamp` identifies the programs that install it."""
        family = "python" if self.language is ScriptLanguage.PYTHON else "node"
        digest = hashlib.sha256()
        for part in (family, self.kind.name, stamp, *self.files):
            digest.update(len(part).to_bytes(8, "big") + part.encode())
        for content in self.files.values():
            digest.update(len(content).to_bytes(8, "big") + content)
        return digest.hexdigest()[:32]


def dependencies_of(script: Script, language: ScriptLanguage) -> Dependencies:
    """Read the files beside the script. Raises ScriptFailure (`DependencyError`) if one cannot be read."""
    try:
        kind, names, files = _python(script) if language is ScriptLanguage.PYTHON else _javascript(script.folder, language)
        return Dependencies(language, kind, {**files, **{name: _read(script.folder / name) for name in names}})
    except OSError as error:
        message = f"What {script.path!r} depends on cannot be read: {error.strerror}: {Path(str(error.filename)).name}."
        raise ScriptFailure(ScriptErrorKind.DEPENDENCY, message) from error


def locked_dependencies(project: Path) -> Dependencies | None:
    """The locked dependencies of a project that a command starts; None if it has no lock. Blocks.

    Raises ScriptFailure.
    """
    for name in _PYTHON_LOCKS:
        if (project / name).is_file():
            # The lock stands for the script, since a command has none whose metadata could take precedence.
            return dependencies_of(Script(project / name, name), ScriptLanguage.PYTHON)
    node = dependencies_of(Script(project / "package.json", "package.json"), ScriptLanguage.NODEJS)
    return node if node.kind is Kind.NPM_LOCK else None


def _python(script: Script) -> tuple[Kind, Iterable[str], dict[str, bytes]]:
    if block := _inline_block(script):
        lock = script.file.with_name(script.file.name + ".lock")
        if _is_there(lock):
            return Kind.INLINE_LOCK, (), {INLINE: block, f"{INLINE}.lock": _read(lock)}
        return Kind.INLINE, (), {INLINE: block}
    kind, names = _beside(script.folder)
    version = (PYTHON_VERSION,) if _is_there(script.folder / PYTHON_VERSION) else ()
    return kind, (*names, *version), {}


def _beside(folder: Path) -> tuple[Kind, tuple[str, ...]]:
    if _is_there(folder / "requirements.lock"):
        return Kind.REQUIREMENTS_LOCK, ("requirements.lock",)
    if _is_there(folder / "requirements.txt"):
        included = {*folder.glob("*requirements*.txt"), *folder.glob("constraints*.txt")}
        names = sorted(path.name for path in included if _is_there(path) and path.name != "requirements.txt")
        return Kind.REQUIREMENTS, ("requirements.txt", *names)
    if _is_there(folder / "pyproject.toml"):
        if _is_there(folder / "uv.lock"):
            return Kind.UV_LOCK, ("uv.lock", "pyproject.toml")
        return Kind.PYPROJECT, ("pyproject.toml",)
    return Kind.NOTHING, ()


def _javascript(folder: Path, language: ScriptLanguage) -> tuple[Kind, Iterable[str], dict[str, bytes]]:
    if not _is_there(folder / "package.json"):
        return Kind.NOTHING, (), {}
    locks = {"bun.lock": Kind.BUN_LOCK, "bun.lockb": Kind.BUN_LOCK, _NPM_LOCK: Kind.NPM_LOCK}
    own = sorted(locks, key=lambda name: (locks[name] is Kind.BUN_LOCK) is not (language is ScriptLanguage.BUN))
    for name in own:
        if _is_there(folder / name):
            return locks[name], (name, "package.json", *(_packed_beside(folder) if name == _NPM_LOCK else ())), {}
    return Kind.BUN if language is ScriptLanguage.BUN else Kind.NPM, ("package.json",), {}


def _packed_beside(folder: Path) -> list[str]:
    """Packages in files beside the lock that the lock names."""
    there = [path.name for path in folder.glob("*.tgz") if _is_there(path)]
    lock = _read(folder / _NPM_LOCK).decode(errors="replace") if there else ""
    return sorted(name for name in there if f'"file:{name}"' in lock)


def _inline_block(script: Script) -> bytes | None:
    """The script's metadata block alone, so that other changes of the script keep its environment."""
    blocks = _blocks(_read(script.file).decode(errors="replace").replace("\r\n", "\n").split("\n"))
    if len(blocks) > 1:
        raise ScriptFailure(ScriptErrorKind.DEPENDENCY, f"{script.path!r} has more than one block of script metadata (PEP 723).")
    return "\n".join((*blocks[0], "")).encode() if blocks else None


def _blocks(lines: list[str]) -> list[list[str]]:
    """The blocks of script metadata, as PEP 723's regular expression finds them, but in linear time."""
    # For each line, the last closing line of its comment.
    closing: list[int] = [-1] * (len(lines) + 1)
    for at in range(len(lines) - 1, -1, -1):
        if lines[at] == "#" or lines[at].startswith("# "):
            closing[at] = closing[at + 1] if closing[at + 1] >= 0 else at if lines[at] == _CLOSES else -1
    found: list[list[str]] = []
    at = 0
    while at < len(lines):
        opens = _ANY_OPENS.fullmatch(lines[at]) is not None and closing[at] > at + 1
        if opens and lines[at] == _OPENS:
            found.append(lines[at : closing[at] + 1])
        at = closing[at] + 1 if opens else at + 1
    return found


def _is_there(path: Path) -> bool:
    """Whether it is a regular file and no link, which could lead anywhere."""
    return path.is_file() and not path.is_symlink()


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        content = file.read(_MAX_FILE_BYTES + 1)
    if len(content) > _MAX_FILE_BYTES:
        raise ScriptFailure(ScriptErrorKind.DEPENDENCY, f"{path.name!r} is larger than {_MAX_FILE_BYTES} bytes.")
    return content
