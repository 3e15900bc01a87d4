"""The output of a process: in files of limited size (`Output`), or its first bytes in memory (`Capture`)."""

import asyncio
import contextlib
import os
from collections.abc import Callable
from pathlib import Path

TAIL_BYTES = 64 * 1024
_CHUNK = 64 * 1024


class Stream:
    """One stream of a child, read by the event loop as data arrives. A blocked loop makes the child wait."""

    def __init__(self) -> None:
        self._total = 0
        self._tail = bytearray()
        self._ended = asyncio.Event()
        self._read_end, self.write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._read_end, self._drain)

    def close_write_end(self) -> None:
        """Call this once the child has it: otherwise the stream never ends."""
        if self.write_end >= 0:
            os.close(self.write_end)
            self.write_end = -1

    async def finish(self, patience_s: float) -> None:
        """Wait until all writers have ended, for at most `patience_s` seconds, and close."""
        self.close_write_end()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), patience_s)
        self._close()

    def tail(self, max_bytes: int = TAIL_BYTES) -> str:
        """The end of the output, with a note if there was more."""
        kept = bytes(self._tail[-max_bytes:])
        note = f"[… {self._total - len(kept)} earlier bytes left out]\n" if self._total > len(kept) else ""
        return note + kept.decode(errors="replace")

    def last_lines(self, count: int) -> list[str]:
        """The last lines. A line without its beginning may hold a part of a secret: it is left out, or has a note if it is alone."""
        lines = bytes(self._tail).decode(errors="replace").splitlines()
        if self._total > len(self._tail):
            lines = lines[1:] or self.tail().splitlines()
        return lines[-count:]

    def _drain(self) -> None:
        try:
            chunk = os.read(self._read_end, _CHUNK)
        except BlockingIOError:
            return
        if not chunk:
            self._close()
            return
        self._take(chunk)

    def add(self, chunk: bytes) -> None:
        """Add bytes as if the child had written them. Ignored after closing."""
        if not self._ended.is_set():
            self._take(chunk)

    def _take(self, chunk: bytes) -> None:
        self._total += len(chunk)
        self._tail += chunk
        del self._tail[:-TAIL_BYTES]
        self._keep(chunk)

    def _keep(self, chunk: bytes) -> None:
        raise NotImplementedError

    def _close(self) -> None:
        if not self._ended.is_set():
            self._ended.set()
            self._loop.remove_reader(self._read_end)
            os.close(self._read_end)


class Output(Stream):
    """Writes one stream of a child to `path`. When the file reaches `max_bytes` it becomes `<path>.1`, and a new one begins.

    So a stream takes at most twice `max_bytes` of disk.
    """

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path, self._max_bytes = path, max_bytes
        self._earlier = path.with_name(path.name + ".1")
        # The files of an earlier run are not truncated: another version of the tool may still write to them.
        self._earlier.unlink(missing_ok=True)
        path.unlink(missing_ok=True)
        self._file = path.open("wb", buffering=0)
        self._size = 0
        super().__init__()

    def _keep(self, chunk: bytes) -> None:
        # A full disk must not end the tool: the tail in memory goes on.
        with contextlib.suppress(OSError):
            self._write(chunk)

    def _write(self, chunk: bytes) -> None:
        if self._size + len(chunk) > self._max_bytes:
            self._file.close()
            self._path.replace(self._earlier)
            self._file = self._path.open("wb", buffering=0)
            self._size = 0
        self._file.write(chunk)
        self._size += len(chunk)

    def _close(self) -> None:
        super()._close()
        self._file.close()


class Capture(Stream):
    """Keeps the first `max_bytes` of a stream in memory. `overflowed` is set if there was more, which is dropped.

    `told` is called with the kept bytes as they arrive.
    """

    def __init__(self, max_bytes: int, told: Callable[[bytes], None] | None = None) -> None:
        self._max_bytes, self._told = max_bytes, told
        self._kept = bytearray()
        self.overflowed = asyncio.Event()
        super().__init__()

    @property
    def kept(self) -> bytes:
        return bytes(self._kept)

    def _keep(self, chunk: bytes) -> None:
        fits = chunk[: self._max_bytes - len(self._kept)]
        self._kept += fits
        if fits and self._told is not None:
            self._told(fits)
        if len(fits) < len(chunk):
            self.overflowed.set()
