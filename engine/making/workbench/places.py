"""Translates a model's paths to places in a task's folder; no other path can be named."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath

from engine.making.workbench.refusal import BenchRefused

WORK = PurePosixPath("/work")
"""Where programs and the model see the task's files."""

LOGS = PurePosixPath("/logs")
"""Where they see the outputs of commands, read-only."""

_ENVIRONMENTS = PurePosixPath("/environments")
_MOST_CHARACTERS = 1_000
_MOST_BYTES_OF_NAME = 255
_DEEPEST = 40


class Area(StrEnum):
    """A folder of a workbench, by its name there."""

    WORK = "work"
    LOGS = "logs"


@dataclass(frozen=True, slots=True)
class Place:
    """A file or folder in an area; no part is `..`."""

    area: Area
    parts: tuple[str, ...]

    def __str__(self) -> str:
        """The path that the model sees."""
        return str((WORK if self.area is Area.WORK else LOGS).joinpath(*self.parts))


def environment_of(project: str) -> PurePosixPath:
    """Where programs see the packages of a project."""
    return _ENVIRONMENTS / project


def place_of(text: str) -> Place:
    """Relative paths begin at `/work`. Raises BenchRefused."""
    if not text.strip() or "\0" in text or len(text) > _MOST_CHARACTERS or not text.isprintable():
        raise BenchRefused(
            f"{text[:100]!r} is no path: it is empty, longer than {_MOST_CHARACTERS} characters, or holds control characters."
        )
    path = WORK / text
    if ".." in path.parts:
        raise BenchRefused(f"The path {text!r} holds '..'. Name the file from {WORK} on.")
    for area, root in ((Area.WORK, WORK), (Area.LOGS, LOGS)):
        if path.is_relative_to(root):
            return Place(area, _require_names(text, path.relative_to(root).parts))
    raise BenchRefused(f"The path {text!r} is outside of {WORK}, and only what is in there can be read and written.")


def _require_names(text: str, parts: tuple[str, ...]) -> tuple[str, ...]:
    try:
        longest = max((len(part.encode()) for part in parts), default=0)
    except UnicodeEncodeError as error:
        raise BenchRefused(f"The path {text!r} is no text that a file can be named by.") from error
    if longest > _MOST_BYTES_OF_NAME or len(parts) > _DEEPEST:
        raise BenchRefused(f"The path {text[:100]!r} has a name of more than {_MOST_BYTES_OF_NAME} bytes, or more than {_DEEPEST} folders.")
    return parts
