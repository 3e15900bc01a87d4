"""Runs commands in containers that are up."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, cast

from docker.utils import socket as streams  # pyright: ignore[reportMissingTypeStubs] - it has none; `_Frames` says what is used

from engine.runtimes.docker.engine import Api

__all__ = ["Executed", "begin", "execute"]

_STDOUT = 1


@dataclass(frozen=True, slots=True)
class Executed:
    """How a command ended: 124 after its time. A cut output says so at its end."""

    exit_code: int
    stdout: str
    stderr: str


class _Closable(Protocol):
    def close(self) -> None: ...


class _Connection(Protocol):
    """What a started command says, as the library hands it out."""

    _response: _Closable


_frames = cast("Callable[[_Connection, bool], Iterator[tuple[int, bytes]]]", streams.frames_iter)  # pyright: ignore[reportUnknownMemberType]


class _Text:
    """One stream, up to so many bytes."""

    def __init__(self, most: int) -> None:
        self._most, self._kept, self._is_cut = most, bytearray(), False

    def add(self, part: bytes) -> None:
        room = self._most - len(self._kept)
        self._kept += part[:room]
        self._is_cut |= len(part) > room

    def __str__(self) -> str:
        note = f"\n[… cut after {self._most} bytes]" if self._is_cut else ""
        return self._kept.decode(errors="replace") + note


def execute(api: Api, container: str, argv: list[str], most: int, environment: dict[str, str]) -> Executed:
    """Runs to its end, keeping at most so many bytes of each stream. Blocks."""
    run = str(api.exec_create(container, argv, environment=environment)["Id"])
    connection = cast("_Connection", api.exec_start(run, socket=True))
    out, err = _Text(most), _Text(most)
    try:
        for stream, part in _frames(connection, False):
            (out if stream == _STDOUT else err).add(part)
    finally:
        # The library leaves it open until it is collected.
        connection._response.close()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - there is no public way to it
    return Executed(int(api.exec_inspect(run)["ExitCode"] or 0), str(out), str(err))


def begin(api: Api, container: str, argv: list[str]) -> None:
    """Starts it, and does not wait for it. Blocks a moment."""
    api.exec_start(str(api.exec_create(container, argv, stdout=False, stderr=False)["Id"]), detach=True)
