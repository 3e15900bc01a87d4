"""Finding and reading `*.tool.json`, and the scripts that they name, on this machine's disk."""

import os
import stat
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from toolagent.contracts.tool_files import ExternalScript
from toolagent.core.tool_file_rules import ScriptPlace, misplaced, too_large
from toolagent.core.tool_files import SUFFIX

__all__ = ["NoScriptError", "NotReadError", "Script", "files_below", "find_script", "real", "text_of"]

_LEFT_OUT = frozenset({".venv", "__pycache__", ".git", "node_modules", ".pytest_cache", ".ruff_cache", ".mypy_cache"})


class NotReadError(ValueError):
    """The text says why a file is none that can be read."""


class NoScriptError(ValueError):
    """The text says what is wrong and what to do."""


@dataclass(frozen=True, slots=True)
class Script:
    """`name` lies in `folder`, which is all that the script gets to see of the tool."""

    folder: Path
    name: str


def files_below(folder: Path, note: Callable[[OSError], None] | None = None) -> Iterator[Path]:
    """Every file of a tool in the folder and below, folder by folder. `note` is told of folders that cannot be read."""
    for place, folders, names in os.walk(folder, onerror=note):
        folders[:] = sorted(name for name in folders if name not in _LEFT_OUT)
        yield from (Path(place, name) for name in sorted(names) if name.endswith(SUFFIX) and not name.startswith("."))


def real(path: Path) -> Path:
    """Where it leads: two names may be of one file."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # a RuntimeError: it leads in a circle
        return path


def text_of(path: Path) -> str:
    """Raises NotReadError."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise NotReadError("This is no file.")
        if (reason := too_large(status.st_size)) is not None:
            raise NotReadError(reason)
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotReadError(f"The file is not UTF-8 text (byte {error.start}).") from error
    except OSError as error:
        raise NotReadError(f"The file cannot be read: {error.strerror}.") from error


def find_script(handler: ExternalScript, beside: Path, script_root: Path | None, shared: Collection[Path]) -> Script:
    """Below the folder of its file; where nothing is there, below the script root. Blocks. Raises NoScriptError.

    `shared` are folders that hold many tools.
    """
    bases = [base for base in (beside, script_root) if base is not None]
    found = next((place for base in bases if (place := _place(base, handler.script_path)) is not None), None)
    reason = misplaced(handler.script_path, [str(base) for base in bases], found, {real(folder) for folder in shared})
    if reason is not None or found is None or found.real is None:
        raise NoScriptError(reason)
    return Script(Path(found.real.parent), found.real.name)


def _place(base: Path, script_path: str) -> ScriptPlace | None:
    """None where nothing is there."""
    path = base / script_path
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise NoScriptError(f"The script cannot be looked at: {error}.") from error
    try:
        there = path.resolve(strict=True)
    except (OSError, RuntimeError):  # a RuntimeError: it leads in a circle
        return ScriptPlace(str(base), real(base), None, is_file=False)
    return ScriptPlace(str(base), real(base), there, there.is_file())
