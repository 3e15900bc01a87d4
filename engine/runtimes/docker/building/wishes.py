"""The requested properties of a build container, and the file that keeps them for later processes."""

import contextlib
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from engine.runtimes.docker_engine.labels import digest


@dataclass(frozen=True, slots=True)
class Wishes:
    """An agent's request. `hosts` may be reached besides the package index, where the policy allows.

    `shown` maps our own folders to their read-only places in the container. Callers may name no other folders there.
    """

    tool_id: str
    image: str | None = None
    ports: tuple[int, ...] = ()
    volumes: Mapping[str, str] = field(default_factory=dict[str, str])
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    hosts: tuple[str, ...] = ()
    mem_limit: str | None = None
    nano_cpus: int | None = None
    use_gpu: bool = False
    gpu_count: int = -1
    shown: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Note:
    """What is stored of a container. `published` maps the container's ports to those of this machine."""

    wishes: Wishes
    image: str
    published: Mapping[int, int]

    def __str__(self) -> str:
        return _NOTE.dump_json(self).decode()

    @property
    def mark(self) -> str:
        """A digest for the labels, which every user of the engine sees."""
        return digest(str(self))


class Notes:
    """The notes of one state directory, in private files: the environment may hold secrets."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, name: str, note: Note) -> None:
        """Store a container's note. Raises OSError."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = self._file(name).with_suffix(".part")
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(str(note))
        part.rename(self._file(name))

    def read(self, name: str, mark: str) -> Note | None:
        """None if the note is missing, or does not match the container's mark."""
        with contextlib.suppress(OSError, UnicodeDecodeError, ValidationError):
            note = _NOTE.validate_json(self._file(name).read_text(encoding="utf-8"))
            return note if note.mark == mark else None
        return None

    def forget(self, name: str) -> None:
        self._file(name).unlink(missing_ok=True)

    def forget_others(self, names: Collection[str]) -> None:
        """Remove all notes except those of these containers."""
        kept = {self._file(name) for name in names}
        for file in self._folder.glob("*"):
            if file not in kept:
                file.unlink(missing_ok=True)

    def _file(self, name: str) -> Path:
        return self._folder / f"{digest(name)}.json"


_NOTE = TypeAdapter(Note)
