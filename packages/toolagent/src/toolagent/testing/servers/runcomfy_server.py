"""A test server for RunComfy over real HTTP and WebSocket: its server API, a ComfyUI for each server, and its controls.

The server API has the real paths, below `/prod/api`. The ComfyUI of a server is at `/comfy/SERVER`, the controls are at `/control`.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from pydantic import JsonValue
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.websockets import WebSocket

from toolagent.testing.servers.comfy_app import ComfyServer
from toolagent.testing.servers.runcomfy_ledger import Fault, FaultKind, Ledger, Operation, Rented
from toolagent.testing.servers.serving import ConnectionCut, ServerThread
from toolagent.testing.servers.told_faults import ToldFaults

__all__ = ["Account", "RunComfyServer"]

_Endpoint = Callable[[Request], Awaitable[Response]]
_Answer = Callable[[Request, FaultKind | None], Awaitable[Response]]
_Comfy = Callable[[ComfyServer, Request], Awaitable[Response]]

_TYPES = ("medium", "large", "extra-large", "2x-large", "2xl-turbo")
_MESSAGES = {
    400: "bad request",
    401: "unauthorized",
    402: "insufficient balance",
    403: "forbidden",
    413: "too large",
    429: "rate_limited",
    500: "internal error",
}


@dataclass(frozen=True)
class Account:
    """The account that may rent servers. `versions` are its workflow versions, the newest last."""

    user_id: str = "tester"
    key: str = "stand-in-key"
    versions: Sequence[str] = ("version-1",)


class RunComfyServer(ServerThread):
    """`with RunComfyServer() as server:`, then set `TOOL_AGENT_RUNCOMFY_URL` to `server.api_url`.

    A server is `Starting` for `start_s`, and its status is unknown for `hidden_s`. Each node of a workflow takes `node_s`.
    """

    def __init__(
        self,
        port: int = 0,
        account: Account | None = None,
        *,
        start_s: float = 0.2,
        hidden_s: float = 0.0,
        node_s: float = 0.05,
        faults: Iterable[Fault] = (),
    ) -> None:
        self.account = account or Account()
        self._start_s, self._hidden_s, self._node_s = start_s, hidden_s, node_s
        self._faults = ToldFaults(Fault, faults)
        self.fail = self._faults.add
        self._ledger = Ledger()
        self.ledger = self._ledger.shown
        """The answer of `/control/ledger`: `launched`, `stopped`, `vanished`, `running`, and each server with its times."""
        self._comfy: dict[str, ComfyServer] = {}
        super().__init__(Starlette(routes=self._routes()), port)

    @property
    def api_url(self) -> str:
        return f"{self.url}/prod/api"

    def _routes(self) -> list[Mount]:
        servers, server = "/users/{user_id}/servers", "/users/{user_id}/servers/{server_id}"
        cloud = [
            Route("/users/{user_id}/workflows", self._cloud("workflows", self._workflows)),
            Route(servers, self._cloud("list", self._list), methods=["GET"]),
            Route(servers, self._cloud("launch", self._launch), methods=["POST"]),
            Route(server, self._cloud("status", self._status), methods=["GET"]),
            Route(server, self._cloud("stop", self._stop), methods=["DELETE"]),
        ]
        comfy = [
            Route("/upload/image", self._faulty("upload", self._at_comfy(ComfyServer.upload)), methods=["POST"]),
            Route("/prompt", self._faulty("prompt", self._prompt), methods=["POST"]),
            Route("/history/{prompt_id}", self._faulty("history", self._at_comfy(ComfyServer.history))),
            Route("/view", self._faulty("view", self._at_comfy(ComfyServer.view))),
            Route("/models/{folder}", self._at_comfy(ComfyServer.models)),
            Route("/object_info/{kind}", self._at_comfy(ComfyServer.object_info)),
            Route("/queue", self._at_comfy(ComfyServer.queue), methods=["GET"]),
            Route("/queue", self._at_comfy(ComfyServer.dequeue), methods=["POST"]),
            Route("/interrupt", self._at_comfy(ComfyServer.interrupt), methods=["POST"]),
            WebSocketRoute("/ws", self._messages),
        ]
        control = [Route("/ledger", self._show_ledger), *self._faults.routes("/faults")]
        return [Mount("/prod/api", routes=cloud), Mount("/comfy/{server_id}", routes=comfy), Mount("/control", routes=control)]

    def _faulty(self, operation: Operation, answer: _Answer) -> _Endpoint:
        async def endpoint(request: Request) -> Response:
            fault = self._faults.next(lambda one: one.hits(operation))
            if fault is not None and (failed := _failed(fault)) is not None:
                await request.body()  # an unread body would reset the connection, and the answer with it
                return failed
            kind = fault.kind if fault else None
            given = await answer(request, kind)
            if fault is not None and kind == "slow":
                await asyncio.sleep(fault.seconds)
            return _lost() if kind == "lost_answer" else given

        return endpoint

    def _cloud(self, operation: Operation, answer: _Answer) -> _Endpoint:
        """An endpoint of the server API, for the account alone."""

        async def allowed(request: Request, fault: FaultKind | None) -> Response:
            if request.headers.get("authorization") != f"Bearer {self.account.key}":
                return _error(401)
            return await answer(request, fault) if request.path_params["user_id"] == self.account.user_id else _error(403)

        return self._faulty(operation, allowed)

    def _at_comfy(self, answer: _Comfy) -> Callable[..., Awaitable[Response]]:
        """An endpoint of the ComfyUI of a server that is ready."""

        async def endpoint(request: Request, _: FaultKind | None = None) -> Response:
            found = self._found(request)
            return await answer(found, request) if found else _error(404)

        return endpoint

    async def _workflows(self, _request: Request, _: FaultKind | None) -> Response:
        made = datetime(2026, 1, 1, tzinfo=UTC)
        every = [
            {"workflow_id": f"workflow-{n}", "workflow_name": f"workflow {n}", "version_id": one, "updated_at": _iso(made + timedelta(n))}
            for n, one in enumerate(self.account.versions)
        ]
        return JSONResponse(every)

    async def _list(self, request: Request, _: FaultKind | None) -> Response:
        return JSONResponse([_shown(one, request) for one in self._ledger.running()])

    async def _launch(self, request: Request, fault: FaultKind | None) -> Response:
        body = await request.json()
        known = body.get("workflow_version_id") in self.account.versions and body.get("server_type") in _TYPES
        if not known or not isinstance(body.get("estimated_duration"), int):
            return JSONResponse({"error": "invalid parameters: workflow_version_id, server_type or estimated_duration"}, 400)
        rented = Rented(
            server_id=str(uuid.uuid4()),
            user_id=self.account.user_id,
            server_type=body["server_type"],
            estimated_duration=body["estimated_duration"],
            workflow_version_id=body["workflow_version_id"],
            launched_at=datetime.now(UTC),
            ready_after_s=None if fault == "never_ready" else self._start_s,
            fails=fault == "fails_to_start",
        )
        self._ledger.servers[rented.server_id] = rented
        self._comfy[rented.server_id] = ComfyServer(self._node_s, partial(rented.end, "vanished"))
        return JSONResponse(_shown(rented, request))

    async def _status(self, request: Request, _: FaultKind | None) -> Response:
        rented = self._rented(request)
        is_hidden = rented is not None and (datetime.now(UTC) - rented.launched_at).total_seconds() < self._hidden_s
        return _error(404) if rented is None or is_hidden else JSONResponse(_shown(rented, request))

    async def _stop(self, request: Request, fault: FaultKind | None) -> Response:
        known, rented = self._ledger.servers.get(str(request.path_params["server_id"])), self._rented(request)
        if known is not None:
            known.stops_unanswered += fault == "lost_answer"
            known.stops_again += rented is None
        if rented is None:
            self._ledger.refused_stops += 1
            return _error(404)
        rented.end("stopped")
        comfy = self._comfy.pop(rented.server_id)
        comfy.close()
        await comfy.drop()
        return JSONResponse(_shown(rented, request))

    def _rented(self, request: Request | WebSocket) -> Rented | None:
        found = self._ledger.servers.get(str(request.path_params["server_id"]))
        return found if found is not None and found.ended_by is None else None

    def _found(self, request: Request | WebSocket) -> ComfyServer | None:
        rented = self._rented(request)
        return self._comfy.get(rented.server_id) if rented is not None and rented.status == "Ready" else None

    async def _prompt(self, request: Request, fault: FaultKind | None) -> Response:
        return await found.prompt(request, fault) if (found := self._found(request)) else _error(404)

    async def _messages(self, socket: WebSocket) -> None:
        found = self._found(socket)
        await (socket.close(1008) if found is None else found.messages(socket))

    async def _show_ledger(self, _: Request) -> Response:
        return JSONResponse(self.ledger())


def _shown(rented: Rented, request: Request) -> dict[str, JsonValue]:
    ready = rented.status == "Ready"
    ready_at = rented.launched_at + timedelta(seconds=rented.ready_after_s or 0)
    base = f"{request.url.scheme}://{request.url.netloc}"
    return {
        "server_id": rented.server_id,
        "estimated_duration": rented.estimated_duration,
        "server_type": rented.server_type,
        "user_id": rented.user_id,
        "main_service_url": f"{base}/comfy/{rented.server_id}" if ready else None,
        "current_status": rented.status,
        "service_ready_at": _iso(ready_at) if ready else None,
        "estimated_stopping_at": _iso(ready_at + timedelta(seconds=rented.estimated_duration)) if ready else None,
    }


def _failed(fault: Fault) -> Response | None:
    """None for a fault with which the request is carried out."""
    if fault.kind == "garbage":
        return Response("<html><body>Bad gateway", media_type="text/html")
    if fault.kind == "nan":
        return Response('{"outputs": NaN}', media_type="application/json")
    if not fault.kind.isdigit():
        return None
    answer = _error(int(fault.kind))
    if fault.kind == "429":
        answer.headers["Retry-After"] = f"{fault.retry_after:g}"
    return answer


def _error(status: int) -> Response:
    return JSONResponse({"error": _MESSAGES.get(status, "not found")}, status)


def _lost() -> Response:
    async def nothing() -> AsyncIterator[bytes]:
        raise ConnectionCut
        yield b""

    return StreamingResponse(nothing(), media_type="application/json")


def _iso(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
