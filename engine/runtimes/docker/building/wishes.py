"""What a build container should be like, and where that is stored for later processes."""

import contextlib
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from engine.runtimes.docker_engine.labels import digest


@dataclass(frozen=True, slots=True)
class Wishes:
    """What an agent asks of it. `hosts` may be reached besides the package index, where the policy allows.

    `shown` are folders of ours, by their paths, that the container sees without writing to them; nothing but ours may be named there.
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
    """`published` are the ports of this machine by those of the container."""

    wishes: Wishes
    image: str
    published: Mapping[int, int]

    def __str__(self) -> str:
        return _NOTE.dump_json(self).decode()

    @property
    def mark(self) -> str:
        """The public part, written as labels, which every user of the engine sees."""
        return digest(str(self))


class Notes:
    """Those of one state directory, in private files: the environment may hold secrets."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, name: str, note: Note) -> None:
        """Of the container of this name. Raises OSError."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = self._file(name).with_suffix(".part")
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(str(note))
        part.rename(self._file(name))

    def read(self, name: str, mark: str) -> Note | None:
        """None when it is not there, or not what the container was made of."""
        with contextlib.suppress(OSError, UnicodeDecodeError, ValidationError):
            note = _NOTE.validate_json(self._file(name).read_text(encoding="utf-8"))
            return note if note.mark == mark else None
        return None

    def forget(self, name: str) -> None:
        self._file(name).unlink(missing_ok=True)

    def forget_others(self, names: Collection[str]) -> None:
        """All but those of the containers of these names."""
        kept = {self._file(name) for name in names}
        for file in self._folder.glob("*"):
            if file not in kept:
                file.unlink(missing_ok=True)

    def _file(self, name: str) -> Path:
        return self._folder / f"{digest(name)}.json"


_NOTE = TypeAdapter(Note)
