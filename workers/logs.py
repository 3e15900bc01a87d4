"""What the service says while it runs: to stderr, for people at a terminal and for machines elsewhere."""

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
"""At INFO these log whole URLs, with whatever secrets are in them, or every detail."""

_SILENT = ("mcp", "client")
"""Both are of MCP's SDK. What a server does wrong is said by the call that fails; here it could write without end, and ids of sessions."""

_LINE = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_HALF = 8_000
"""Characters of a text that are kept at either end: an error may quote megabytes of what it was about."""


def configure_logging(level: str = "info", form: Literal["console", "json"] | None = None) -> None:
    """Without a `form` events are for people at a terminal and JSON elsewhere, and lines of libraries are plain text."""
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
    """Lines of libraries as events, with the name of who says them."""
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[structlog.stdlib.add_logger_name],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *processors, renderer],
    )


class _BoundedFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return _cut(super().format(record))


def _without_what_is_foreseen(record: logging.LogRecord) -> bool:
    """An activity that waits for its database, or refuses what it was asked for, says so in a line each time, not in a hundred."""
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
    """Without the values of variables, which may be large and secret."""
    return "".join(traceback.format_exception(*exc_info)).rstrip()


def _cut(text: str) -> str:
    left_out = len(text) - 2 * _HALF
    return text if left_out <= 0 else f"{text[:_HALF]}… ({left_out:,} characters) …{text[-_HALF:]}"
