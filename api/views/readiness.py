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
"""An outcome this old is still told: whoever asks often costs no more than whoever asks seldom."""

_PATIENCE_S = 3.0
"""A check that takes its time under load is as well as it was this long ago."""

_log = structlog.stdlib.get_logger(__name__)


class Remembered:
    """A check that is made once at a time, and not more often than every second."""

    def __init__(self, check: Check, limit_s: float = 15.0) -> None:
        self._check, self._limit_s = check, limit_s
        self._running: asyncio.Task[None] | None = None
        self._outcome: BaseException | None = None
        self._ended: float | None = None

    @property
    def outcome(self) -> BaseException | None:
        """What it raised the last time."""
        return self._outcome

    async def __call__(self) -> None:
        """Raises what the check raised; TimeoutError when it has not answered for too long."""
        if self._age() > _FRESH_S:
            task = self._running = self._running or asyncio.create_task(self._run(), name="health check")
            await asyncio.wait((task,), timeout=_BOUND_S * 0.9)
            if not task.done() and self._age() > _PATIENCE_S:
                raise TimeoutError
        if self._outcome is not None:
            raise self._outcome

    async def _run(self) -> None:
        try:
            async with asyncio.timeout(self._limit_s):
                await self._check()
            self._outcome = None
        except Exception as error:  # noqa: BLE001 - whatever it is, whoever asks is told
            self._outcome = error
        finally:
            self._ended, self._running = time.monotonic(), None

    def _age(self) -> float:
        return float("inf") if self._ended is None else time.monotonic() - self._ended


async def health(checks: Mapping[str, Check], loop: LoopPause | None = None, lane: LaneCounts | None = None) -> Response:
    """200 when all checks pass, else 503 with short reasons; the log has them in full. Takes `_BOUND_S` seconds at most.

    What only some tools need (LackingError) is named, and makes no 503.
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
    """Anybody may ask, so nothing of what a driver says of addresses, users and paths."""
    match failure:
        case TimeoutError():
            return f"no answer within {_BOUND_S:g} s"
        case NotReadyError():
            return str(failure)
        case StoreUnavailableError():
            return failure.told
        case _:
            return f"does not answer ({type(failure).__name__})"
