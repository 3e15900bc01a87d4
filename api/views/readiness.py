"""Whether every part of the service is ready."""

import asyncio
import time
from collections.abc import Mapping

import structlog
from starlette.responses import Response

from api.ports import Check, LackingError, NotReadyError
from toolagent.contracts.http import Health, LoopPause
from toolagent.contracts.lanes import LaneCounts
from toolagent.core.failures import StoreUnavailableError

_BOUND_S = 0.8
_FRESH_S = 1.0
"""How old a returned outcome may be, so that frequent requests cost no more than rare ones."""

_PATIENCE_S = 3.0
"""How long the last outcome of a check counts while the check runs, as under load."""

_log = structlog.stdlib.get_logger(__name__)


class Remembered:
    """A check that runs once at a time, and at most once a second."""

    def __init__(self, check: Check, limit_s: float = 15.0) -> None:
        self._check, self._limit_s = check, limit_s
        self._running: asyncio.Task[None] | None = None
        self._ended = float("-inf")
        self.outcome: BaseException | None = None
        """The error of the last run."""

    async def __call__(self) -> None:
        """Raises what the check raised, or TimeoutError if it has not answered for too long."""
        if self._age() > _FRESH_S:
            task = self._running = self._running or asyncio.create_task(self._run(), name="health check")
            await asyncio.wait((task,), timeout=_BOUND_S * 0.9)
            if not task.done() and self._age() > _PATIENCE_S:
                raise TimeoutError
        if self.outcome is not None:
            raise self.outcome

    async def _run(self) -> None:
        try:
            async with asyncio.timeout(self._limit_s):
                await self._check()
            self.outcome = None
        except Exception as error:  # noqa: BLE001 - each caller of the check gets it
            self.outcome = error
        finally:
            self._ended, self._running = time.monotonic(), None

    def _age(self) -> float:
        return time.monotonic() - self._ended


async def health(checks: Mapping[str, Check], loop: LoopPause | None = None, lane: LaneCounts | None = None) -> Response:
    """Answers 200 if all checks pass, otherwise 503 with short reasons; the log has them in full. Takes `_BOUND_S` seconds at most.

    A LackingError is shown, but does not make the service unavailable.
    """
    outcomes = await asyncio.gather(*(asyncio.wait_for(check(), _BOUND_S) for check in checks.values()), return_exceptions=True)
    failures = {name: outcome for name, outcome in zip(checks, outcomes, strict=True) if outcome is not None}
    broken = {name: failure for name, failure in failures.items() if not isinstance(failure, LackingError)}
    for name, failure in broken.items():
        _log.warning("check_failed", check=name, error=type(failure).__name__, reason=str(failure))
    said = {name: _reason(failures[name]) if name in failures else "ok" for name in checks}
    found = Health(status="unavailable" if broken else "ok", checks=said, loop=loop, lane=lane)
    return Response(found.model_dump_json(exclude_none=True), 503 if broken else 200, media_type="application/json")


def _reason(failure: BaseException) -> str:
    """The reason for everybody, without the addresses, users and paths in a driver's message."""
    match failure:
        case TimeoutError():
            return f"no answer within {_BOUND_S:g} s"
        case NotReadyError():
            return str(failure)
        case StoreUnavailableError():
            return failure.told
        case _:
            return f"does not answer ({type(failure).__name__})"
