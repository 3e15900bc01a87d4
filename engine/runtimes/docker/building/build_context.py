"""The part of a folder that the engine gets to build an image from."""

import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, cast

from docker.utils import build as contexts  # pyright: ignore[reportMissingTypeStubs] - it has none; `_tar` and `_paths` say what is used

from engine.runtimes.failures import StartFailed
from toolagent.contracts.calls import ErrorType

FILE = ".dockerfile.tool-agent"
"""The checked Dockerfile, added under its own name: the engine builds what was checked."""
_IGNORED = ".dockerignore"
_MOST_IGNORED = 64 * 1024


_tar = cast("Callable[[str, list[str], tuple[str, str]], BinaryIO]", contexts.tar)  # pyright: ignore[reportUnknownMemberType] - not typed
_paths = cast("Callable[[str, list[str], str], set[str]]", contexts.exclude_paths)  # pyright: ignore[reportUnknownMemberType] - not typed


def build_context(folder: Path, text: str, most: int | None) -> BinaryIO:
    """The folder as a tar, without the files in its `.dockerignore`; at most `most` bytes. Raises StartFailed, OSError."""
    patterns = _ignored(folder)
    size = sum(_size(folder / path) for path in _paths(str(folder), [*patterns], FILE))
    if most is not None and size > most:
        message = f"The folder has {size} bytes, and {most} may be built from: name in its {_IGNORED} what the image does not need."
        raise StartFailed(ErrorType.DEPENDENCY_ERROR, message, {"bytes": size, "most": most})
    return _tar(str(folder), patterns, (FILE, text))


def _ignored(folder: Path) -> list[str]:
    file = folder / _IGNORED
    if not file.is_file():
        return []
    with file.open("rb") as opened:
        said = opened.read(_MOST_IGNORED + 1)
    if len(said) > _MOST_IGNORED:
        message = f"The file {_IGNORED} has more than {_MOST_IGNORED} bytes: say the same with fewer patterns."
        raise StartFailed(ErrorType.DEPENDENCY_ERROR, message, {"file": _IGNORED})
    lines = [line.strip() for line in said.decode(errors="replace").splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def _size(path: Path) -> int:
    status = path.lstat()
    return status.st_size if stat.S_ISREG(status.st_mode) else 0
