"""Finds and reads `*.tool.json` and their scripts on the disk."""

import os
import re
import stat
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import chain, islice
from pathlib import Path, PurePosixPath

from toolagent.contracts.tool_files import ExternalScript
from toolagent.core.catalog.tool_file_rules import ScriptPlace, misplaced, too_large
from toolagent.core.catalog.tool_files import SUFFIX

__all__ = [
    "YAML_FORM",
    "NoScriptError",
    "NotReadError",
    "Script",
    "anothers_scripts",
    "files_below",
    "find_script",
    "real",
    "text_of",
    "yaml_forms",
]

YAML_FORM = (
    f"A tool in YAML is not read. Write a *{SUFFIX} (`toolagent new-tool NAME` makes one; its schema: GET /schemas/tool.json): `name` is "
    "`toolId` and `displayName`, `parameters` a JSON Schema, `entry` is `handler`. What `entry` names may be a tool already: GET /tools."
)

MOST_PARTS = 8
MOST_MET = 15_000
_MOST_FORMS = 200
_YAML_KEY = re.compile(r"^(\w+)\s*:", re.MULTILINE)
"""A key at the top level of a document."""
_LEFT_OUT = frozenset({".venv", "__pycache__", ".git", "node_modules", ".pytest_cache", ".ruff_cache", ".mypy_cache"})


class NotReadError(ValueError):
    """The file cannot be read. The message says why."""


class NoScriptError(ValueError):
    """The script cannot be used. The message says why and what to do; `field` names the place in the file."""

    def __init__(self, message: str | None, field: tuple[str | int, ...] = ("handler", "scriptPath")) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True)
class Script:
    """A script `name` in `folder`. `matched` has the files below the folder that each pattern of `files` matches.

    The script sees the whole folder, or, if it `is_alone`, only itself and the matched files.
    """

    folder: Path
    name: str
    matched: tuple[tuple[str, ...], ...] = ()
    is_alone: bool = False

    @property
    def given(self) -> tuple[str, ...] | None:
        """The names of the files that it sees, below its folder; None for all."""
        return tuple(sorted({self.name, *(name for names in self.matched for name in names)})) if self.is_alone else None


def files_below(folder: Path, note: Callable[[OSError], None] | None = None) -> Iterator[Path]:
    """All tool files in the folder and below. `note` is called for unreadable folders."""
    for place, folders, names in os.walk(folder, onerror=note):
        folders[:] = sorted(name for name in folders if name not in _LEFT_OUT)
        yield from (Path(place, name) for name in sorted(names) if name.endswith(SUFFIX) and not name.startswith("."))


def yaml_forms(folder: Path) -> Iterator[Path]:
    """Files directly in the folder that describe a tool in YAML: they have `parameters` and an `entry`. Looks at some files only."""
    try:
        found = sorted(islice(chain(folder.glob("*.yaml"), folder.glob("*.yml")), _MOST_FORMS))
    except OSError:  # the folder was removed; the search for tool files reports that
        return
    for path in found:
        try:
            keys = set(_YAML_KEY.findall(text_of(path)))
        except NotReadError:
            continue
        if keys >= {"parameters", "entry"}:
            yield path


def real(path: Path) -> Path:
    """The path without links, because two names may be of one file."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # a RuntimeError for a circle of links
        return path


def text_of(path: Path) -> str:
    """The text of a file. Raises NotReadError."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise NotReadError("This is not a file.")
        if (reason := too_large(status.st_size)) is not None:
            raise NotReadError(reason)
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotReadError(f"The file is not UTF-8 text (byte {error.start}).") from error
    except OSError as error:
        raise NotReadError(f"The file cannot be read: {error.strerror}.") from error


def find_script(handler: ExternalScript, beside: Path, script_root: Path | None, shared: Collection[Path] = ()) -> Script:
    """Looks below the folder of the tool's file, then below the script root. Blocks. Raises NoScriptError.

    `shared` are folders with many tools: a script directly in one of them sees only itself.
    """
    bases = [base for base in (beside, script_root) if base is not None]
    found = next((place for base in bases if (place := _place(base, handler.script_path)) is not None), None)
    reason = misplaced(handler.script_path, [str(base) for base in bases], found)
    if reason is not None or found is None or found.real is None:
        raise NoScriptError(reason)
    folder = Path(found.real.parent)
    matched = tuple(_matched(folder, pattern, index) for index, pattern in enumerate(handler.files))
    return Script(folder, found.real.name, matched, bool(handler.files) or folder in {real(one) for one in shared})


def anothers_scripts(scripts: Mapping[str, tuple[str, Script]]) -> dict[str, tuple[int, str]]:
    """For each file whose patterns match the script of another tool: the pattern's index, and the reason. `scripts` is by file name."""
    owners: dict[Path, set[str]] = {}
    for tool_id, script in scripts.values():
        owners.setdefault(script.folder / script.name, set()).add(tool_id)
    faults: dict[str, tuple[int, str]] = {}
    for file, (tool_id, script) in scripts.items():
        for index, names in enumerate(script.matched):
            others = ((name, owners.get(real(script.folder / name), set[str]()) - {tool_id}) for name in names if name != script.name)
            if (found := next(((name, ids) for name, ids in others if ids), None)) is not None:
                faults[file] = index, f"{found[0]!r} is the script of {min(found[1])!r}. Name the files that this script needs."
                break
    return faults


def _matched(folder: Path, pattern: str, index: int) -> tuple[str, ...]:
    """The matching files, and all files below matching folders, without tool files. Does not follow links to folders."""
    field = ("handler", "files", index)
    parts = PurePosixPath(pattern).parts
    if not parts or ".." in parts or pattern.startswith("/") or len(parts) > MOST_PARTS:
        raise NoScriptError(f"{pattern!r} is no pattern of files below {str(folder)!r}, of at most {MOST_PARTS} names.", field)
    found: list[str] = []
    met = 0
    waiting = [(folder, _onward(parts, {0}))]
    while waiting:
        place, steps = waiting.pop()
        for entry in _entries(place, field):
            reached = _reached(parts, steps, entry.name)
            met += bool(reached)
            if met > MOST_MET:
                raise NoScriptError(f"{pattern!r} leads to more than {MOST_MET:,} files and folders. Name fewer.", field)
            if reached and entry.is_dir(follow_symlinks=False):
                waiting.append((Path(entry.path), reached))
            elif len(parts) in reached and not entry.name.endswith(SUFFIX) and _is_file(folder, entry, field):
                found.append(Path(entry.path).relative_to(folder).as_posix())
    if not found:
        raise NoScriptError(f"{pattern!r} names no file in {str(folder)!r}. Correct the pattern, or leave it out.", field)
    return tuple(sorted(found))


def _is_file(folder: Path, entry: os.DirEntry[str], field: tuple[str | int, ...]) -> bool:
    """Raises NoScriptError for a link that does not lead to something else in the folder."""
    if not entry.is_symlink():
        return entry.is_file(follow_symlinks=False)
    try:
        target = Path(entry.path).resolve(strict=True)
    except (OSError, RuntimeError) as error:  # a RuntimeError for a circle of links
        if entry.name.startswith("."):  # the lock of an editor, such as Emacs' `.#x.py`: no file of the tool
            return False
        raise NoScriptError(
            f"{entry.name!r} is a link that leads nowhere, or in a circle. Remove it, or put a file there.", field
        ) from error
    if not target.is_relative_to(folder):
        raise NoScriptError(f"{entry.name!r} leads out of {str(folder)!r} by a link. Put a copy there.", field)
    if target.is_dir():
        raise NoScriptError(f"{entry.name!r} is a link to a folder. Put the folder itself there.", field)
    return target.is_file()


def _entries(folder: Path, field: tuple[str | int, ...]) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return [entry for entry in entries if entry.name not in _LEFT_OUT]
    except OSError as error:
        raise NoScriptError(f"{str(folder)!r} cannot be read: {error.strerror}.", field) from error


def _onward(parts: Sequence[str], steps: set[int]) -> frozenset[int]:
    """The numbers of matched parts of a pattern. `**` also matches nothing."""
    return frozenset(steps | {step + 1 for step in steps if parts[step : step + 1] == ("**",)})


def _reached(parts: Sequence[str], steps: frozenset[int], name: str) -> frozenset[int]:
    """The numbers of matched parts after one more name. Everything below a matching folder matches too."""
    end = len(parts)
    kept = {step for step in steps if step == end or parts[step] == "**"}
    return _onward(parts, kept | {step + 1 for step in steps if step < end and parts[step] != "**" and fnmatchcase(name, parts[step])})


def _place(base: Path, script_path: str) -> ScriptPlace | None:
    """None if nothing is at the path."""
    path = base / script_path
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise NoScriptError(f"The script cannot be read: {error}.") from error
    try:
        there = path.resolve(strict=True)
    except (OSError, RuntimeError):  # a RuntimeError for a circle of links
        return ScriptPlace(str(base), real(base), None, is_file=False)
    return ScriptPlace(str(base), real(base), there, there.is_file())
