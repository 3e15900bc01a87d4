"""Sets up the log, on stderr: for people at a terminal, as JSON elsewhere."""

import logging
import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import Literal

import structlog
from structlog.typing import EventDict, ExcInfo, Processor, WrappedLogger
from temporalio.exceptions import ApplicationError

from toolagent.core.failures import StoreUnavailableError

_QUIET = ("httpx", "websockets", "httpx2", "httpcore", "httpcore2", "temporalio", "uvicorn.error", "asyncio", "alembic")
"""Loggers that at INFO write whole URLs, perhaps with secrets, or every detail."""

_SILENT = ("mcp", "client")
"""Loggers of MCP's SDK. Failed calls report the faults of a server; these loggers could write without end, and ids of sessions."""

_LINE = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_HALF = 8_000
"""Characters that are kept at each end of a long text: an error may quote megabytes."""


def configure_logging(level: str = "info", form: Literal["console", "json"] | None = None) -> None:
    """Without a `form`, events are for people at a terminal and JSON elsewhere; lines of libraries are plain text."""
    least = logging.getLevelNamesMapping()[level.upper()]
    for_people = form == "console" or (form is None and sys.stderr.isatty())
    renderer = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty()) if for_people else structlog.processors.JSONRenderer()
    processors: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.ExceptionRenderer(_traceback),
        _bounded,
    ]
    structlog.configure(
        processors=[*processors, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(least),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_formatter(processors, renderer) if form == "json" else _BoundedFormatter(_LINE))
    logging.basicConfig(level=least, handlers=(handler,))
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(least, logging.WARNING))
    for name in _SILENT:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    logging.getLogger("temporalio.activity").addFilter(_without_what_is_foreseen)


def _formatter(processors: Sequence[Processor], renderer: Processor) -> logging.Formatter:
    """Formats lines of libraries as events, with the name of their logger."""
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[structlog.stdlib.add_logger_name],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *processors, renderer],
    )


class _BoundedFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return _cut(super().format(record))


def _without_what_is_foreseen(record: logging.LogRecord) -> bool:
    """Shortens the log of an activity that waits for the database, or refuses its input, to one line."""
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, StoreUnavailableError):
        record.msg, record.args, record.exc_info = f"{record.getMessage()}: {error}", (), None
    elif isinstance(error, ApplicationError) and error.non_retryable and error.type:
        record.msg, record.args, record.exc_info = f"{_activity_of(record)} refused: {error}", (), None
    return True


def _activity_of(record: logging.LogRecord) -> str:
    known: Mapping[str, object] = getattr(record, "temporal_activity", {})
    return f"{known.get('activity_type', 'an activity')} of {known.get('workflow_id', 'a workflow')}"


def _bounded(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    return {name: _cut(value) if isinstance(value, str) else value for name, value in event.items()}


def _traceback(exc_info: ExcInfo) -> str:
    """A traceback without the values of variables, which may be large or secret."""
    return "".join(traceback.format_exception(*exc_info)).rstrip()


def _cut(text: str) -> str:
    left_out = len(text) - 2 * _HALF
    return text if left_out <= 0 else f"{text[:_HALF]}… ({left_out:,} characters) …{text[-_HALF:]}"
