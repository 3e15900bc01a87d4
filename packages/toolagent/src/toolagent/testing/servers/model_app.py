"""The scripted Messages API as a web application.

`/scripted/…` tells which turns were played.
"""

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime

from pydantic import JsonValue
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from toolagent.testing.servers.api_errors import STATUS_FAULTS, ApiError, error_body
from toolagent.testing.servers.delivery import Delivery
from toolagent.testing.servers.requests import read_request
from toolagent.testing.servers.scenario import FaultKind, Scenario
from toolagent.testing.servers.script import Script

__all__ = ["model_app"]

_LARGEST = 32 * 1024 * 1024
_MODEL = "scripted-model"


def model_app(script: Script) -> Starlette:
    """`/v1` is the vendor's API. `GET /scripted/turns`, `GET /scripted/unmet` and `DELETE /scripted/turns` are our own."""
    routes = _Routes(script)
    return Starlette(
        routes=[
            Route("/v1/messages", routes.messages, methods=["POST"]),
            Route("/v1/messages/count_tokens", routes.count_tokens, methods=["POST"]),
            Route("/v1/models", routes.models),
            Route("/v1/models/{model}", routes.model),
            Route("/scripted/turns", routes.turns),
            Route("/scripted/turns", routes.forget, methods=["DELETE"]),
            Route("/scripted/unmet", routes.unmet),
        ],
        exception_handlers={ApiError: _refused, 404: _not_there, 405: _not_there},
    )


class _Routes:
    def __init__(self, script: Script) -> None:
        self._script = script

    async def messages(self, request: Request) -> Response:
        scenario = self._known_head(request)
        asked = read_request(await _body(request))
        if scenario.models and asked.model not in scenario.models:
            raise ApiError("not_found_error", f"model: {asked.model}")
        step = self._script.step(asked)
        if step.fault is not None and step.fault.kind in STATUS_FAULTS:
            error, message = STATUS_FAULTS[step.fault.kind]
            raise ApiError(error, step.fault.message or message, step.fault.retry_after)
        told = Delivery(self._script, step, request)
        if asked.stream:
            return StreamingResponse(told.streamed(), headers={**_headers(), "cache-control": "no-cache"}, media_type="text/event-stream")
        if step.fault is not None and step.fault.kind is FaultKind.ERROR_EVENT:
            raise ApiError("overloaded_error", step.fault.message or "Overloaded", step.fault.retry_after)
        whole = told.whole()
        return StreamingResponse(whole.body, headers={**_headers(), "content-length": str(whole.length)}, media_type="application/json")

    async def count_tokens(self, request: Request) -> Response:
        self._known_head(request)
        asked = read_request(await _body(request), for_an_answer=False)
        return JSONResponse({"input_tokens": self._script.tokens(asked)}, headers=_headers())

    async def models(self, request: Request) -> Response:
        names = _models(self._known_head(request))
        page = {"data": [*map(_model_info, names)], "has_more": False, "first_id": names[0], "last_id": names[-1]}
        return JSONResponse(page, headers=_headers())

    async def model(self, request: Request) -> Response:
        name = str(request.path_params["model"])
        if name not in _models(self._known_head(request)):
            raise ApiError("not_found_error", f"model: {name}")
        return JSONResponse(_model_info(name), headers=_headers())

    async def turns(self, _request: Request) -> Response:
        return JSONResponse([turn.model_dump() for turn in self._script.turns()])

    async def unmet(self, _request: Request) -> Response:
        return JSONResponse([*self._script.unmet()])

    async def forget(self, _request: Request) -> Response:
        self._script.forget()
        return Response(status_code=204)

    def _known_head(self, request: Request) -> Scenario:
        """The scenario, for a request with its key and a version. Raises ApiError."""
        scenario = self._script.scenario
        given = request.headers.get("x-api-key") or request.headers.get("authorization", "").removeprefix("Bearer ")
        if not given:
            raise ApiError("authentication_error", "x-api-key header is required")
        if scenario.key is not None and given != scenario.key:
            raise ApiError("authentication_error", "invalid x-api-key")
        if "anthropic-version" not in request.headers:
            raise ApiError("invalid_request_error", "anthropic-version: header is required")
        return scenario


async def _body(request: Request) -> bytes:
    body = await request.body()
    if len(body) > _LARGEST:
        raise ApiError("request_too_large", "Request exceeds the maximum allowed number of bytes.")
    return body


def _models(scenario: Scenario) -> Sequence[str]:
    return scenario.models or (_MODEL,)


def _model_info(name: str) -> dict[str, JsonValue]:
    created = datetime(2026, 1, 1, tzinfo=UTC).isoformat()
    return {"type": "model", "id": name, "display_name": name, "created_at": created, "lifecycle": "active"}


def _headers() -> dict[str, str]:
    return {"request-id": f"req_{uuid.uuid4().hex[:24]}"}


async def _refused(_request: Request, error: Exception) -> Response:
    if not isinstance(error, ApiError):
        raise error
    headers = _headers()
    body = error_body(error, headers["request-id"])
    if error.retry_after is not None:
        headers["retry-after"] = f"{error.retry_after:g}"
    return JSONResponse(body, error.status, headers)


async def _not_there(request: Request, _error: Exception) -> Response:
    return await _refused(request, ApiError("not_found_error", f"Not found: {request.method} {request.url.path}"))
