"""Bodies are bounded while they are read, whatever their Content-Length says.

Starlette's own limit answers in plain text, and closes the connection on clients that are still writing.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import STATUS, Refusal, refusal_response
from api.problems import ProblemKind

BODY_SLACK = 65_536
"""Bytes a body may have besides what it is there for: the other fields of a call, the headers of a form's parts."""

MAX_BATCH_BYTES = 1_310_720
"""Bytes of a whole batch: it is one input of a workflow, and Temporal takes no payload above 2 MiB."""

DRAINED = 8 * 1_048_576
"""Bytes, besides twice the limit, that are read and dropped so that the client comes to reading the refusal."""

_DRAIN_TIMEOUT_S = 5.0
_PARAMS_TOO_LARGE = "The parameters of a call may have at most {} bytes of JSON (TOOL_AGENT_MAX_PARAMS_BYTES). POST /files takes files."
_TASK_TOO_LARGE = "What is asked for may have at most {} bytes of JSON (TOOL_AGENT_MAX_PARAMS_BYTES): say less, give smaller examples."
_BATCH_TOO_LARGE = "A batch may have at most {} bytes of JSON; make it several, or have POST /files take what is large in it."
_FILE_TOO_LARGE = "A file may have at most {} bytes (TOOL_AGENT_MAX_FILE_BYTES)."

_ACTION_TOO_LARGE = "What an agent says may have at most {} bytes, its <ACTION> block included. POST /files takes files."

_MESSAGE_TOO_LARGE = "A message may have at most {} bytes (TOOL_AGENT_CHAT_MESSAGE_BYTES). POST /files takes files."

_DETAILS = {
    "/chat": _MESSAGE_TOO_LARGE,
    "/files": _FILE_TOO_LARGE,
    "/run_tools": _BATCH_TOO_LARGE,
    "/agent/action": _ACTION_TOO_LARGE,
    "/create_tool": _TASK_TOO_LARGE,
}


class BodyLimit:
    """Refuses bodies of more than `default` bytes; `by_path` holds other bounds."""

    def __init__(self, app: ASGIApp, default: int, by_path: Mapping[str, int]) -> None:
        self._app = app
        self._default = default
        self._by_path = by_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self._by_path.get(scope["path"], self._default)
        detail = _detail(scope["path"])
        announced = Headers(scope=scope).get("content-length", "")
        if announced.isdecimal() and int(announced[:20]) > limit:
            await _drain(receive, limit)
            await refusal_response(Refusal(ProblemKind.BODY_TOO_LARGE, detail.format(limit - BODY_SLACK)))(scope, receive, send)
            return
        await self._app(scope, _bounded(receive, limit, detail.format(limit - BODY_SLACK)), send)


def _detail(path: str) -> str:
    is_repair = path.startswith("/tools/") and path.endswith("/repair")
    return _TASK_TOO_LARGE if is_repair else _DETAILS.get(path, _PARAMS_TOO_LARGE)


def _bounded(receive: Receive, limit: int, detail: str) -> Receive:
    taken = 0

    async def bounded() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > limit:
            if message.get("more_body"):
                await _drain(receive, limit)
            # FastAPI lets nothing but this type out of the reading of a body.
            raise HTTPException(STATUS[ProblemKind.BODY_TOO_LARGE], detail)
        return message

    return bounded


async def _drain(receive: Receive, limit: int) -> None:
    """A client that writes all before it reads would see its connection reset instead of the answer."""
    left = 2 * limit + DRAINED
    with suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_TIMEOUT_S):
            while left > 0:
                message = await receive()
                left -= len(message.get("body", b""))
                if not message.get("more_body"):
                    return
