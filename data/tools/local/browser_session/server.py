"""Serves the actions on 127.0.0.1: `GET /health`, and `POST /<action>` with its params as a JSON object."""

import asyncio
import contextlib
import logging
import os
import re
from pathlib import Path
from typing import Any

import msgspec
import uvicorn
from playwright.async_api import Error

from actions import ACTIONS, Call
from failures import Failure, invalid
from sessions import Sessions

LOG = logging.getLogger(__name__)

HOST = "127.0.0.1"
MAX_BODY = 1024 * 1024
SAID = 2000
STOP_S = 2
FIELD = re.compile(r"`\$\.?(?P<path>.+?)`$|field `(?P<missing>.+?)`")

Answer = tuple[int, dict[str, Any]]


class App:
    """An ASGI application."""

    def __init__(self, sessions: Sessions) -> None:
        self.sessions = sessions
        self.active = 0

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self.live(receive, send)
        elif scope["type"] == "http":
            status, body = await self.answer(scope, receive)
            headers = [(b"content-type", b"application/json")]
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": msgspec.json.encode(body)})

    async def live(self, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.sessions.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def answer(self, scope: dict[str, Any], receive: Any) -> Answer:
        match scope["method"], scope["path"]:
            case "GET", "/health":
                return 200, {"status": "ok", "active": self.active, "sessions": len(self.sessions.living)}
            case "POST", path if path in ACTIONS:
                self.active += 1
                try:
                    return await self.called(scope, receive)
                except Failure as failure:
                    return failure.status, failure.body
                finally:
                    self.active -= 1
            case _:
                return failed(404, "not_found", "There is GET /health, and POST to one of " + ", ".join(ACTIONS))

    async def called(self, scope: dict[str, Any], receive: Any) -> Answer:
        headers = {name.decode("latin-1"): value.decode(errors="surrogateescape") for name, value in scope["headers"]}
        kind, action = ACTIONS[scope["path"]]
        body = await body_of(receive)
        try:
            params = msgspec.json.decode(body or b"{}", type=kind)
        except msgspec.MsgspecError as error:
            found = FIELD.search(str(error))
            raise invalid(found[found.lastgroup or 0] if found else None, str(error)) from None
        call = Call(headers.get("idempotency-key") or os.urandom(8).hex(), Path(headers.get("x-output-dir", "output")).absolute())
        return await unless_left(self.done(action(self.sessions, params, call), call), receive)

    async def done(self, work: Any, call: Call) -> Answer:
        try:
            return 200, await work
        except Error as error:
            return failed(500, "browser_error", error.message[:SAID])
        except Failure:
            raise
        except Exception as error:
            LOG.exception("call %s failed", call.call_id)
            return failed(500, "tool_error", f"{type(error).__name__}: {error}")


def failed(status: int, reason: str, message: str) -> Answer:
    return status, Failure(status, "execution_error", reason, message).body


async def body_of(receive: Any) -> bytes:
    body = b""
    while True:
        event = await receive()
        body += event.get("body", b"")
        if len(body) > MAX_BODY:
            raise invalid(None, f"The params are larger than {MAX_BODY} bytes.")
        if not event.get("more_body"):
            return body


async def unless_left(work: Any, receive: Any) -> Answer:
    """The answer of the work, which is cancelled if the caller hangs up."""
    working, leaving = asyncio.create_task(work), asyncio.create_task(receive())
    try:
        await asyncio.wait([working, leaving], return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            working.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            return await working
        return 499, {}
    finally:
        leaving.cancel()


def serve(port: int) -> None:
    """Serves until SIGTERM; all sessions end with it."""
    logging.basicConfig(level=logging.INFO)
    app = App(Sessions(os.environ.get("HTTP_PROXY", "")))
    uvicorn.run(app, host=HOST, port=port, log_level="warning", timeout_graceful_shutdown=STOP_S, ws="none", timeout_keep_alive=30)
