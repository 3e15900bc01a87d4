"""Reads a script's progress from stderr: lines `::progress:: {"message": "half way", "fraction": 0.5}`."""

import json

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engine.runtimes.runtime import Progress
from toolagent.core.texts import well_formed

MARK = "::progress::"
_LONGEST_LINE = 4096
_LONGEST_MESSAGE = 200


class _Told(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    message: str = ""
    fraction: float | None = Field(default=None, ge=0, le=1)


class ProgressLines:
    """Reads stderr as it arrives. Of lines that arrive together it reports only the last: scripts may write faster than people read."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._rest = b""

    def feed(self, chunk: bytes) -> None:
        *lines, rest = (self._rest + chunk).split(b"\n")
        self._rest = rest[:_LONGEST_LINE]
        for line in reversed(lines):
            if line.startswith(MARK.encode()) and (text := _text(line)):
                self._progress(text)
                return


def without_progress(text: str) -> str:
    """The text without its lines of progress."""
    return "\n".join(line for line in text.split("\n") if not line.startswith(MARK))


def _text(line: bytes) -> str:
    """The progress in a few words; empty if the line has another form."""
    try:
        told = _Told.model_validate(json.loads(line.decode()[len(MARK) :]))
    except (ValueError, ValidationError, RecursionError):
        return ""
    share = f"{told.fraction:.0%}" if told.fraction is not None else ""
    message = " ".join(well_formed(told.message).split())[:_LONGEST_MESSAGE]
    return f"{message} ({share})" if message and share else message or share
