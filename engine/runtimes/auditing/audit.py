"""The audit log: a line for each run of a sandboxed program, in `audit/audit.jsonl` of the state directory.

Each line is handed to the operating system before the run is reported as ended, so it survives the death of this process. Lines are not
synced to the disk: a power failure may lose the last ones.
"""

import asyncio
import contextlib
import json
import logging
import os
import time
from collections.abc import AsyncGenerator, Generator, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import chain, islice
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import BinaryIO, Literal, Protocol, TypeAlias

import structlog
from pydantic import ValidationError

from engine.network.proxy_rules import Asked
from engine.runtimes.failures import RuntimeFailure
from engine.runtimes.runtime import ToolRequest
from engine.validation.long_values import walked
from toolagent.contracts.audit import AuditEntry, AuditPage
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sandbox import SandboxAccount
from toolagent.core.calls.masking import masked_caller, masked_command, masked_params

MOST_ENTRIES = 1000
"""The most entries of one page."""

_LONGEST_LINE = 256 * 1024
_BLOCK = 64 * 1024
_LOOKED_AT = 200_000
"""The most lines of the log that one page looks at."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

Told: TypeAlias = dict[str, object]
"""Fields of an AuditEntry."""

_MOST_HEARD = 100


class Audit(Protocol):
    """Receives an entry for each run."""

    def note(self, entry: AuditEntry) -> None:
        """Records an entry with masked parameters and command (`toolagent.core.calls.masking`). Raises nothing: a full disk is logged."""
        ...


class NoAudit:
    """For tests, and for runtimes without an audit."""

    def note(self, entry: AuditEntry) -> None: ...


class _Rotating(RotatingFileHandler):
    """Reports lines that cannot be written in the service's own log."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        _log.exception("audit_line_lost", line=record.getMessage()[:500])


class AuditLog:
    """Creates `folder`; `audit.jsonl` is the newest file, `audit.jsonl.1` the one before. One process writes: the folder's owner."""

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
        except OSError as error:  # the last lines do not fit on a full disk
            _log.error("audit_lines_lost", reason=str(error))

    async def read(self, tool_id: str | None = None, since: datetime | None = None, limit: int = 100) -> AuditPage:
        """At most `limit` entries of one tool or of all that began at `since` or later, the newest first."""
        return await asyncio.to_thread(self._read, tool_id, since, min(limit, MOST_ENTRIES))

    def _read(self, tool_id: str | None, since: datetime | None, limit: int) -> AuditPage:
        with ExitStack() as opened:
            return _page(self._files_now(opened), tool_id, since, limit)

    def _files_now(self, opened: ExitStack) -> list[BinaryIO]:
        """The files, the newest first. Nothing rotates while they are opened; later, handles stay readable."""
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
    """The last line first."""
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
    """Ends a line that a crash cut off, so that it does not spoil the next one."""
    if not path.is_file() or path.stat().st_size == 0:
        return
    with path.open("rb+") as file:
        file.seek(-1, os.SEEK_END)
        if file.read(1) != b"\n":
            file.write(b"\n")


class Refusals:
    """The proxy's refusals to one program, for its listeners. Without a listener, refusals are kept for the next one."""

    def __init__(self) -> None:
        self._unheard: dict[str, None] = {}
        self._listening: list[dict[str, None]] = []

    def tell(self, asked: Asked) -> None:
        if not asked.allowed:
            for heard in self._listening or [self._unheard]:
                if len(heard) < _MOST_HEARD:
                    heard[f"{asked.host}:{asked.port}: {asked.reason}"] = None

    def unheard(self) -> tuple[str, ...]:
        """The refusals without a listener so far. Each is returned once."""
        told, self._unheard = tuple(self._unheard), {}
        return told

    @contextlib.contextmanager
    def heard(self) -> Generator[dict[str, None]]:
        """The refusals during the block, a growing collection. Parallel calls both get a refusal."""
        heard, self._unheard = self._unheard, {}
        self._listening.append(heard)
        try:
            yield heard
        finally:
            # By identity, because two listeners with the same refusals are equal.
            self._listening = [other for other in self._listening if other is not heard]


@dataclass(frozen=True, slots=True)
class Audited:
    """Writes the audit entries of one program. `account` is None if its sandbox is not ours; `refusals` collects the proxy's refusals."""

    audit: Audit
    host: str
    tool: ToolManifest
    command: tuple[str, ...]
    account: SandboxAccount | None
    refusals: Refusals = field(default_factory=Refusals)

    def started(self, failure: RuntimeFailure | None = None) -> None:
        """Writes that it started, or why it did not, with the refusals meanwhile."""
        update: Told = {"refusals": self.refusals.unheard(), **(failed(failure) if failure else {})}
        self.audit.note(self._entry("start").model_copy(update=update))

    def ended(self) -> None:
        """Writes the refusals since the last call, if there are any."""
        if refused := self.refusals.unheard():
            update = {"refusals": refused, "message": "It was refused this while no call was made."}
            self.audit.note(self._entry("start").model_copy(update=update))

    @contextlib.asynccontextmanager
    async def call(self, request: ToolRequest) -> AsyncGenerator[None]:
        """Writes an entry of the call that the block makes, in success or failure."""
        called = request.manifest or self.tool
        params = await walked(request.params, partial(masked_params, called.input_schema, request.params))
        update = {"call_id": request.call_id, "caller": masked_caller(request.caller), "params": params}
        if called.tool_id != self.tool.tool_id:  # another tool that shares the process
            update |= {"tool_id": called.tool_id, "version": called.version}
        with noted(self.audit, self._entry("call").model_copy(update=update), self.refusals):
            try:
                yield
            except RuntimeFailure as failure:
                await failure.hide_secrets(called.input_schema, request.params)
                raise

    def _entry(self, action: Literal["call", "start"]) -> AuditEntry:
        return AuditEntry(
            at=datetime.now(UTC),
            action=action,
            tool_id=self.tool.tool_id,
            version=self.tool.version,
            host=self.host,
            command=masked_command(self.command),
            sandbox=self.account,
        )


@contextlib.contextmanager
def noted(audit: Audit, entry: AuditEntry, refusals: Refusals) -> Generator[Told]:
    """Writes the entry when the block has ended, with outcome, duration, refusals, and the fields that the block adds."""
    began, told = time.monotonic(), Told()
    with refusals.heard() as refused:
        try:
            yield told
        except RuntimeFailure as error:
            told |= failed(error)
            raise
        except asyncio.CancelledError:
            told["outcome"] = "cancelled"
            raise
        except BaseException as error:
            told |= {"outcome": "error", "message": type(error).__name__}
            raise
        finally:
            update = {"refusals": tuple(refused), "duration_s": time.monotonic() - began, **told}
            audit.note(entry.model_copy(update=update))


class _Failure(Protocol):
    @property
    def error_type(self) -> ErrorType: ...

    message: str


def failed(failure: _Failure) -> Told:
    outcome = "timeout" if failure.error_type is ErrorType.TIMEOUT else "error"
    return {"outcome": outcome, "error_type": failure.error_type, "message": failure.message}
