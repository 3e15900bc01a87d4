"""The audit log: a line for each run of a sandboxed program, in `audit/audit.jsonl` of the state directory.

Each line is handed to the operating system before the run is reported as ended, so it survives the death of this process. It is not
synced to the disk each time: a machine that loses its power may lose the last lines.
"""

import asyncio
import json
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from datetime import datetime
from itertools import chain, islice
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import BinaryIO, Protocol

import structlog
from pydantic import ValidationError

from toolagent.contracts.audit import AuditEntry, AuditPage

MOST_ENTRIES = 1000
"""How many entries are read at once."""

_LONGEST_LINE = 256 * 1024
_BLOCK = 64 * 1024
_LOOKED_AT = 200_000
"""Lines of the log that one reading looks at, at most."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Audit(Protocol):
    """Receives an entry for each run."""

    def note(self, entry: AuditEntry) -> None:
        """Write it down. Parameters and command must be masked (`toolagent.core.calls.masking`). Does not raise: a full disk is logged."""
        ...


class NoAudit:
    """For tests, and for runtimes without an audit."""

    def note(self, entry: AuditEntry) -> None:
        pass


class _Rotating(RotatingFileHandler):
    """Says in the service's own log when a line could not be written."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        _log.exception("audit_line_lost", line=record.getMessage()[:500])


class AuditLog:
    """`folder` is made; `audit.jsonl` is the newest file, `audit.jsonl.1` the one before. One process writes, which owns the folder."""

    def __init__(self, folder: Path, *, max_bytes: int = 16 * 1_048_576, files: int = 8) -> None:
        self._path = folder / "audit.jsonl"
        self._files = files
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._is_whole = False
        self._handler = _Rotating(self._path, maxBytes=max_bytes, backupCount=files - 1, encoding="utf-8", delay=True)
        self._handler.setFormatter(logging.Formatter("%(message)s"))

    def note(self, entry: AuditEntry) -> None:
        if not self._is_whole:  # only the writer repairs: others may read the folder while its owner writes
            self._is_whole = True
            _end_torn_line(self._path)
        line = _line(entry)
        if len(line) > _LONGEST_LINE:
            line = _line(entry.model_copy(update=dict.fromkeys(("installs", "refusals", "command"), ("too long",)) | {"params": {}}))
        self._handler.handle(logging.LogRecord("audit", logging.INFO, "", 0, line, None, None))

    def close(self) -> None:
        try:
            self._handler.close()
        except OSError as error:  # what a full disk has not taken yet
            _log.error("audit_lines_lost", reason=str(error))

    async def read(self, tool_id: str | None = None, since: datetime | None = None, limit: int = 100) -> AuditPage:
        """The newest entries first, of one tool or of all, that began at `since` or later; `limit` of them at most."""
        return await asyncio.to_thread(self._read, tool_id, since, min(limit, MOST_ENTRIES))

    def _read(self, tool_id: str | None, since: datetime | None, limit: int) -> AuditPage:
        with ExitStack() as opened:
            return _page(self._files_now(opened), tool_id, since, limit)

    def _files_now(self, opened: ExitStack) -> list[BinaryIO]:
        """The newest first. Nothing is rotated while they are opened; what is rotated away after that is read under its old handle."""
        files: list[BinaryIO] = []
        self._handler.acquire()
        try:
            for path in (self._path, *(Path(f"{self._path}.{number}") for number in range(1, self._files))):
                with suppress(FileNotFoundError):
                    files.append(opened.enter_context(path.open("rb")))
        finally:
            self._handler.release()
        return files


def _page(files: Sequence[BinaryIO], tool_id: str | None, since: datetime | None, limit: int) -> AuditPage:
    found: list[AuditEntry] = []
    unreadable = looked_at = 0
    for line in islice(chain.from_iterable(map(_lines_backwards, files)), _LOOKED_AT):
        looked_at += 1
        entry = _parsed(line)
        if entry is None:
            unreadable += 1
        elif (tool_id is None or entry.tool_id == tool_id) and (since is None or entry.at >= since):
            if len(found) == limit:
                return AuditPage(entries=tuple(found), more=True, unreadable=unreadable)
            found.append(entry)
    return AuditPage(entries=tuple(found), more=looked_at == _LOOKED_AT, unreadable=unreadable)


def _lines_backwards(file: BinaryIO) -> Iterator[bytes]:
    """The last one first."""
    position = file.seek(0, os.SEEK_END)
    rest = b""
    while position > 0:
        step = min(_BLOCK, position)
        position -= step
        file.seek(position)
        rest, *lines = (file.read(step) + rest).split(b"\n")
        yield from (line for line in reversed(lines) if line)
    if rest:
        yield rest


def _line(entry: AuditEntry) -> str:
    """ASCII, so that no character of a parameter can end a line."""
    return json.dumps(entry.model_dump(mode="json", exclude_defaults=True), ensure_ascii=True, separators=(",", ":"))


def _parsed(line: bytes) -> AuditEntry | None:
    try:
        return AuditEntry.model_validate_json(line)
    except ValidationError:
        return None


def _end_torn_line(path: Path) -> None:
    """A line that a crash cut off must not spoil the next one."""
    if not path.is_file() or path.stat().st_size == 0:
        return
    with path.open("rb+") as file:
        file.seek(-1, os.SEEK_END)
        if file.read(1) != b"\n":
            file.write(b"\n")
