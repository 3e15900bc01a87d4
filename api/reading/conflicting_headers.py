"""A request that says one thing in two ways is refused: whoever reads the other one would take it for another request."""

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from api.errors import Refusal, refusal_response
from api.problems import ProblemKind
from toolagent.contracts.http import ProblemField

__all__ = ["ConflictingHeaders"]

_SAID_ONCE = ("Idempotency-Key", "X-Call-Id", "Authorization", "Content-Type", "Origin", "Range", "If-Range", "Last-Event-ID")
"""Headers that are read here, of which only one value can count. `Host` the gate looks at."""


class ConflictingHeaders:
    """Answers 400 when one of them stands there twice, with values that differ."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or (name := _conflicting(Headers(scope=scope))) is None:
            await self._app(scope, receive, send)
            return
        field = ProblemField(field=name, message="It stands there twice, with different values. Send one.")
        refusal = Refusal(ProblemKind.CONFLICTING_HEADERS, f"{name}: {field.message}", errors=(field,))
        await refusal_response(refusal)(scope, receive, send)


def _conflicting(headers: Headers) -> str | None:
    return next((name for name in _SAID_ONCE if len(set(headers.getlist(name))) > 1), None)
