"""What the service says while it runs: to stderr, for people at a terminal and for machines elsewhere."""

import logging
import sys

import structlog
from temporalio.runtime import LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter

__all__ = ["configure_logging"]

_QUIET = ("httpx", "httpx2", "httpcore", "httpcore2", "temporalio", "uvicorn.error", "asyncio", "alembic")
"""At INFO these log whole URLs, with whatever secrets are in them, or every detail."""


def configure_logging(level: int = logging.INFO) -> None:
    renderer = structlog.dev.ConsoleRenderer() if sys.stderr.isatty() else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    core = LoggingConfig(filter=TelemetryFilter(core_level="ERROR", other_level="ERROR"))
    Runtime.set_default(Runtime(telemetry=TelemetryConfig(logging=core)), error_if_already_set=False)
    logging.basicConfig(level=level, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
