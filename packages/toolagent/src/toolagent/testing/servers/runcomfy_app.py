"""A stand-in of RunComfy as a web application: its server API, a ComfyUI at the address of each server, and what controls it.

The paths of the server API are those of the real one, below `/prod/api`; a ComfyUI is below `/comfy/SERVER`. `/control` is ours.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial

from pydantic import JsonValue
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.websockets import WebSocket

from toolagent.testing.servers.comfy_app import ComfyServer
from toolagent.testing.servers.runcomfy_ledger import Fault, Ledger, Operation, Rented
from toolagent.testing.servers.serving import ConnectionCut
from toolagent.testing.servers.told_faults import ToldFaults

__all__ = ["Account", "RunComfyApp"]

Answer = Callable[[Request, Fault | None], Awaitable[Response]]
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
    """Who may rent; `versions` are those of the account's workflows, the newest last."""

    user_id: str = "tester"
    key: str = "stand-in-key"
    versions: Sequence[str] = ("version-1",)


@dataclass
class RunComfyApp:
    """`start_s` is how long a server is `Starting`, `hidden_s` how long it is unknown to the status, `node_s` what a node takes."""

    account: Account = field(default_factory=Account)
    start_s: float = 0.2
    hidden_s: float = 0.0
    node_s: float = 0.05
    faults: ToldFaults[Fault] = field(default_factory=lambda: ToldFaults(Fault))
    ledger: Ledger = field(default_factory=Ledger)
    _comfy: dict[str, ComfyServer] = field(default_factory=dict[str, ComfyServer])

    def application(self) -> Starlette:
        users = "/users/{user_id}"
        cloud = [
            Route(f"{users}/workflows", self._faulty("workflows", self._workflows)),
            Route(f"{users}/servers", self._faulty("list", self._list), methods=["GET"]),
            Route(f"{users}/servers", self._faulty("launch", self._launch), methods=["POST"]),
            Route(f"{users}/servers/{{server_id}}", self._faulty("status", self._status), methods=["GET"]),
            Route(f"{users}/servers/{{server_id}}", self._faulty("stop", self._stop), methods=["DELETE"]),
        ]
        comfy = [
            Route("/upload/image", self._faulty("upload", self._upload), methods=["POST"]),
            Route("/prompt", self._faulty("prompt", self._prompt), methods=["POST"]),
            Route("/history/{prompt_id}", self._faulty("history", self._history)),
            Route("/view", self._faulty("view", self._view)),
            Route("/models/{folder}", self._models),
            Route("/object_info/{kind}", self._object_info),
            Route("/queue", self._queue, methods=["GET"]),
            Route("/queue", self._dequeue, methods=["POST"]),
            Route("/interrupt", self._interrupt, methods=["POST"]),
            WebSocketRoute("/ws", self._messages),
        ]
        control = [
            Route("/ledger", self._show_ledger),
            *self.faults.routes("/faults"),
        ]
        return Starlette(
            routes=[Mount("/prod/api", routes=cloud), Mount("/comfy/{server_id}", routes=comfy), Mount("/control", routes=control)]
        )

    def _faulty(self, operation: Operation, answer: Answer) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            fault = self.faults.next(lambda one: one.hits(operation))
            if fault is not None and (failed := _failed(fault)) is not None:
                await request.body()  # unread, the connection is reset, and the answer with it
                return failed
            given = await answer(request, fault)
            if fault is not None and fault.kind == "slow":
                await asyncio.sleep(fault.seconds)
            return _lost() if fault is not None and fault.kind == "lost_answer" else given

        return endpoint

    def _refusal(self, request: Request) -> Response | None:
        if request.headers.get("authorization") != f"Bearer {self.account.key}":
            return _error(401)
        return None if request.path_params["user_id"] == self.account.user_id else _error(403)

    async def _workflows(self, request: Request, _: Fault | None) -> Response:
        made = datetime(2026, 1, 1, tzinfo=UTC)
        every = [
            {"workflow_id": f"workflow-{n}", "workflow_name": f"workflow {n}", "version_id": one, "updated_at": _iso(made + timedelta(n))}
            for n, one in enumerate(self.account.versions)
        ]
        return self._refusal(request) or JSONResponse(every)

    async def _list(self, request: Request, _: Fault | None) -> Response:
        refusal = self._refusal(request)
        return refusal or JSONResponse([self._shown(one, request) for one in self.ledger.running(self.account.user_id)])

    async def _launch(self, request: Request, fault: Fault | None) -> Response:
        if (refusal := self._refusal(request)) is not None:
            return refusal
        body = await request.json()
        known = body.get("workflow_version_id") in self.account.versions and body.get("server_type") in _TYPES
        if not known or not isinstance(body.get("estimated_duration"), int):
            return JSONResponse({"error": "invalid parameters: workflow_version_id, server_type or estimated_duration"}, 400)
        kind = fault.kind if fault else None
        rented = Rented(
            server_id=str(uuid.uuid4()),
            user_id=self.account.user_id,
            server_type=body["server_type"],
            estimated_duration=body["estimated_duration"],
            workflow_version_id=body["workflow_version_id"],
            launched_at=datetime.now(UTC),
            ready_after_s=None if kind == "never_ready" else self.start_s,
            fails=kind == "fails_to_start",
        )
        self.ledger.servers[rented.server_id] = rented
        self._comfy[rented.server_id] = ComfyServer(self.node_s, partial(rented.end, "vanished"))
        return JSONResponse(self._shown(rented, request))

    async def _status(self, request: Request, _: Fault | None) -> Response:
        refusal, rented = self._refusal(request), self._rented(request)
        if refusal is not None:
            return refusal
        is_hidden = rented is not None and (datetime.now(UTC) - rented.launched_at).total_seconds() < self.hidden_s
        return _error(404) if rented is None or is_hidden else JSONResponse(self._shown(rented, request))

    async def _stop(self, request: Request, fault: Fault | None) -> Response:
        if (refusal := self._refusal(request)) is not None:
            return refusal
        known, rented = self.ledger.servers.get(str(request.path_params["server_id"])), self._rented(request)
        if known is not None:
            known.stops_unanswered += fault is not None and fault.kind == "lost_answer"
            known.stops_again += rented is None
        if rented is None:
            self.ledger.refused_stops += 1
            return _error(404)
        rented.end("stopped")
        comfy = self._comfy.pop(rented.server_id)
        comfy.close()
        await comfy.drop()
        return JSONResponse(self._shown(rented, request))

    def _rented(self, request: Request | WebSocket) -> Rented | None:
        found = self.ledger.servers.get(str(request.path_params["server_id"]))
        return found if found is not None and found.ended_by is None else None

    def _shown(self, rented: Rented, request: Request) -> dict[str, JsonValue]:
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

    def _at(self, request: Request | WebSocket) -> ComfyServer | None:
        rented = self._rented(request)
        return self._comfy.get(rented.server_id) if rented is not None and rented.status == "Ready" else None

    async def _upload(self, request: Request, _: Fault | None) -> Response:
        return await found.upload(request) if (found := self._at(request)) else _error(404)

    async def _prompt(self, request: Request, fault: Fault | None) -> Response:
        return await found.prompt(request, fault.kind if fault else None) if (found := self._at(request)) else _error(404)

    async def _history(self, request: Request, _: Fault | None) -> Response:
        return await found.history(request) if (found := self._at(request)) else _error(404)

    async def _view(self, request: Request, _: Fault | None) -> Response:
        return await found.view(request) if (found := self._at(request)) else _error(404)

    async def _models(self, request: Request) -> Response:
        return await found.models(request) if (found := self._at(request)) else _error(404)

    async def _object_info(self, request: Request) -> Response:
        return await found.object_info(request) if (found := self._at(request)) else _error(404)

    async def _queue(self, request: Request) -> Response:
        return await found.queue(request) if (found := self._at(request)) else _error(404)

    async def _dequeue(self, request: Request) -> Response:
        return await found.dequeue(request) if (found := self._at(request)) else _error(404)

    async def _interrupt(self, request: Request) -> Response:
        return await found.interrupt(request) if (found := self._at(request)) else _error(404)

    async def _messages(self, socket: WebSocket) -> None:
        found = self._at(socket)
        await (socket.close(1008) if found is None else found.messages(socket))

    async def _show_ledger(self, _: Request) -> Response:
        return JSONResponse(self.ledger.shown())


def _failed(fault: Fault) -> Response | None:
    """None for a fault that lets the request be carried out."""
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
