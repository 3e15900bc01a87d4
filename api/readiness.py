"""Whether every part of the service is ready."""

import asyncio
from collections.abc import Mapping

from starlette.responses import Response

from api.bodies import Health
from api.ports import Check

__all__ = ["health"]

_BOUND_S = 3.0


async def health(checks: Mapping[str, Check]) -> Response:
    """200 when all checks pass, else 503 with the reasons. Takes `_BOUND_S` seconds at most."""
    outcomes = await asyncio.gather(*(asyncio.wait_for(check(), _BOUND_S) for check in checks.values()), return_exceptions=True)
    said = {name: _reason(outcome) for name, outcome in zip(checks, outcomes, strict=True)}
    is_ready = all(outcome is None for outcome in outcomes)
    found = Health(status="ok" if is_ready else "unavailable", checks=said)
    return Response(found.model_dump_json(), 200 if is_ready else 503, media_type="application/json")


def _reason(outcome: BaseException | None) -> str:
    match outcome:
        case None:
            return "ok"
        case TimeoutError():
            return f"no answer within {_BOUND_S:g} s"
        case _:
            return str(outcome) or type(outcome).__name__
