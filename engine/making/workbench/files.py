"""Reads and writes the files of a task."""

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from engine.making.workbench.descent import folder_at, opened_file
from engine.making.workbench.notes import use_digest, write_whole
from engine.making.workbench.places import Area, Place
from engine.making.workbench.refusal import BenchRefused
from engine.runtimes.sandbox.identity import owner_of
from toolagent_service.agents.trimming import window

MOST_WRITTEN = 4 * 1024 * 1024
"""Bytes of one file that is written."""

MOST_READ = 32 * 1024 * 1024
_LISTED = 60


@dataclass(frozen=True, slots=True)
class Written:
    """`size` is in bytes, of the whole file."""

    path: str
    size: int


_WRITTEN = TypeAdapter(Written)


class BenchFiles:
    """The files of one task. `uses` is our own folder for unfinished writes. Files get the owner of the task's programs."""

    def __init__(self, root: Path, uses: Path) -> None:
        self._root, self._uses = root, uses

    def write(self, place: Place, content: str, mode: Literal["overwrite", "append"], use: str) -> Written:
        """Writes atomically, and only once for each `use`. Raises BenchRefused, OSError. Blocks.

        The whole content is written beside the bench, then the use is noted, then the content takes its place in one step. An attempt
        that finds the note and no content beside the bench knows that the last step was done.
        """
        if place.area is not Area.WORK or not place.parts:
            raise BenchRefused(f"{str(place)!r} cannot be written. Name a file below /work.")
        stage, note = self._uses / f"{use_digest(use)}.content", self._uses / f"{use_digest(use)}.json"
        written = _noted(note)
        if written is None:
            before = b""
            if mode == "append":
                with suppress(FileNotFoundError):
                    before = self._all(place, MOST_WRITTEN)
            written = Written(str(place), self._staged(stage, before + _bytes(content)))
            write_whole(note, json.dumps({"path": written.path, "size": written.size}).encode())
        if stage.exists():
            self._take_place(stage, place)
        return written

    def read(self, place: Place, offset: int = 0, limit: int | None = None) -> str:
        """A part of the text from a character on; its end says how to read on. Raises BenchRefused. Blocks."""
        text = self.text(place)
        return window(text, offset) if limit is None else window(text, offset, limit)

    def text(self, place: Place) -> str:
        """The whole text. Raises BenchRefused. Blocks."""
        content = self._content(place)
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text:
            raise BenchRefused(f"{str(place)!r} is a binary file of {len(content):,} bytes, which cannot be shown as text.")
        return text

    def _content(self, place: Place) -> bytes:
        if not place.parts:
            raise BenchRefused(f"{str(place)!r} is a folder.{self._listed(place)}")
        try:
            return self._all(place, MOST_READ)
        except FileNotFoundError as error:
            raise BenchRefused(f"There is no file {str(place)!r}.{self._listed(Place(place.area, place.parts[:-1]))}") from error
        except PermissionError as error:
            raise BenchRefused(f"{str(place)!r} cannot be read: a program took the right to.") from error
        except BenchRefused as refused:
            raise BenchRefused(f"{refused}{self._listed(place)}") from refused

    def _listed(self, place: Place) -> str:
        try:
            with folder_at(self._root / place.area, place.parts) as fd:
                names = sorted(os.listdir(fd))  # noqa: PTH208 - of a descriptor
        except (OSError, BenchRefused):
            return ""
        more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
        return f" In {place} there is: {', '.join(names[:_LISTED])}{more}." if names else f" {place} is empty."

    def _all(self, place: Place, most: int) -> bytes:
        with opened_file(self._root / place.area, place.parts) as fd:
            size = os.fstat(fd).st_size
            if size > most:
                raise BenchRefused(
                    f"{str(place)!r} has {size:,} bytes, and {most:,} is the most. Look at it with a command, such as head or grep."
                )
            with os.fdopen(os.dup(fd), "rb") as file:
                return file.read(most)

    def _staged(self, stage: Path, content: bytes) -> int:
        if len(content) > MOST_WRITTEN:
            raise BenchRefused(
                f"The file would have {len(content):,} bytes, and {MOST_WRITTEN:,} is the most. Write less, in several files."
            )
        write_whole(stage, content, 0o644)
        return len(content)

    def _take_place(self, stage: Path, place: Place) -> None:
        root = self._root / place.area
        try:
            owner = owner_of(root)
            owner.own(stage)
            with folder_at(root, place.parts[:-1], made_for=owner, make=True) as folder:
                os.rename(stage, place.parts[-1], dst_dir_fd=folder)
        except IsADirectoryError as error:
            raise BenchRefused(f"{str(place)!r} is a folder. Name a file in it.") from error
        except PermissionError as error:
            raise BenchRefused(f"{str(place)!r} cannot be written: a program took the right to.") from error


def _bytes(content: str) -> bytes:
    try:
        return content.encode()
    except UnicodeEncodeError as error:
        raise BenchRefused(f"The content is no text that can be written: {error.reason} at character {error.start}.") from error


def _noted(note: Path) -> Written | None:
    try:
        return _WRITTEN.validate_json(note.read_bytes())
    except (FileNotFoundError, ValidationError):
        return None
