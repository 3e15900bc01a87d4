"""Whether every part of the service is ready."""

import asyncio
from collections.abc import Mapping

import structlog
from starlette.responses import Response

from api.ports import Check, LackingError, NotReadyError
from toolagent.contracts.http import Health, LoopPause
from toolagent.core.failures import StoreUnavailableError

__all__ = ["health"]

_BOUND_S = 3.0
_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


async def health(checks: Mapping[str, Check], loop: LoopPause | None = None) -> Response:
    """200 when all checks pass, else 503 with short reasons; the log has them in full. Takes `_BOUND_S` seconds at most.

    What only some tools need (LackingError) is named, and makes no 503.
    """
    outcomes = await asyncio.gather(*(asyncio.wait_for(check(), _BOUND_S) for check in checks.values()), return_exceptions=True)
    failures = {name: outcome for name, outcome in zip(checks, outcomes, strict=True) if outcome is not None}
    broken = {name: failure for name, failure in failures.items() if not isinstance(failure, LackingError)}
    for name, failure in broken.items():
        _log.warning("check_failed", check=name, error=type(failure).__name__, reason=str(failure))
    said = {name: _reason(failures[name]) if name in failures else "ok" for name in checks}
    found = Health(status="unavailable" if broken else "ok", checks=said, loop=loop)
    return Response(found.model_dump_json(exclude_none=True), 503 if broken else 200, media_type="application/json")


def _reason(failure: BaseException) -> str:
    """Anybody may ask, so nothing of what a driver says of addresses, users and paths."""
    match failure:
        case TimeoutError():
            return f"no answer within {_BOUND_S:g} s"
        case NotReadyError():
            return str(failure)
        case StoreUnavailableError():
            return "The database does not answer."
        case _:
            return f"does not answer ({type(failure).__name__})"
