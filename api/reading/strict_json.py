"""Reads bodies strictly: JSON that all readers understand alike, or a form."""

import asyncio
import inspect
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from email.message import Message

from fastapi import params
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import JsonValue
from pydantic_core import from_json
from starlette.requests import Request
from starlette.responses import Response

from api.errors import Refusal
from api.problems import ProblemKind
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.http import ProblemField
from toolagent.core.calls.json_size import MAX_DEPTH, MAX_STARTED_VALUES, excess_of

LARGE_BYTES = 65_536
"""Longer bodies are read in a thread, so that other requests are answered meanwhile."""

_RULES = (
    f"JSON here is UTF-8, at most {MAX_DEPTH} levels deep, each name of an object once,"
    " without NaN, Infinity, numbers beyond a double's range, or halves of surrogate pairs."
)

_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""An escape that may be half of a surrogate pair."""


class StrictRoute(APIRoute):
    """Reads JSON bodies itself, because FastAPI accepts NaN, duplicate names and half surrogates.

    Calls a handler without dependencies that returns a Response itself: FastAPI's dependencies would take a short call as long as its
    tool. If a value is wrong, FastAPI reads the request again and reports the error.
    """

    is_plain = False

    def get_route_handler(self) -> Callable[[Request], Coroutine[None, None, Response]]:
        handle = super().get_route_handler()
        if self.body_field is None:
            return handle
        endpoint, dependant, self.is_plain = self.endpoint, self.dependant, _is_plain(self.endpoint, self.dependant)
        is_form = isinstance(self.body_field.field_info, params.Form)

        async def handle_form(request: Request) -> Response:
            require_type(request, "multipart/form-data")
            return await handle(request)

        async def handle_json(request: Request) -> Response:
            strict = _JsonRequest(request.scope, request.receive)
            await strict.load()
            given = _given(strict, dependant) if self.is_plain else None
            return await handle(strict) if given is None else await endpoint(**given)

        return handle_form if is_form else handle_json


class _JsonRequest(Request):
    value: JsonValue = None

    async def load(self) -> None:
        body = await self.body()
        if body:
            require_type(self, "application/json")
            self.value = await parsed_json(body, self.app.state.dependencies.limits.max_values)

    async def json(self) -> JsonValue:
        return self.value


def _is_plain(endpoint: Callable[..., object], dependant: Dependant) -> bool:
    """Whether the handler takes only a body, headers, parts of the path and the request, and returns a Response."""
    signature = inspect.signature(endpoint, eval_str=True)
    known = {field.name for field in (*dependant.body_params, *dependant.path_params, *dependant.header_params)}
    bodies = [field.field_info for field in dependant.body_params]
    takes = {*signature.parameters} == known | ({dependant.request_param_name} if dependant.request_param_name else set[str]())
    answers = inspect.iscoroutinefunction(endpoint) and signature.return_annotation is Response
    # Dependencies of a route or router are not in the signature.
    takes = takes and not dependant.dependencies
    return takes and answers and len(bodies) == 1 and isinstance(bodies[0], params.Body) and not bodies[0].embed


def _given(request: _JsonRequest, dependant: Dependant) -> Mapping[str, object] | None:
    """The arguments of the handler; None if one is missing or wrong."""
    given: dict[str, object] = {dependant.request_param_name: request} if dependant.request_param_name else {}
    read = [(field, request.value) for field in dependant.body_params]
    read += [(field, request.path_params.get(field.alias)) for field in dependant.path_params]
    for field, value in read + [(field, request.headers.get(field.alias)) for field in dependant.header_params]:
        errors: object = None
        if value is not None:
            given[field.name], errors = field.validate(value)
        elif not isinstance(field.field_info, params.Header) or field.field_info.is_required():
            return None
        if errors:
            return None
    return given


async def parsed_json(body: bytes, max_values: int) -> JsonValue:
    """As `parse_json`, in a thread if the body is large."""
    return await asyncio.to_thread(parse_json, body, max_values) if len(body) > LARGE_BYTES else parse_json(body, max_values)


def parse_json(body: bytes, max_values: int = MAX_STARTED_VALUES) -> JsonValue:
    """The value. Raises Refusal, with line and column if known."""
    excess = excess_of(body, max_values)
    if excess is not None and excess.of == "values":
        raise Refusal(ErrorType.VALIDATION_ERROR, f"The body {excess} (TOOL_AGENT_MAX_VALUES).", details=excess.details)
    if excess is not None:
        raise _malformed(f"it {excess}")
    try:
        text = body.decode()
        if _HALF.search(text) is not None:
            from_json(body)  # raises for half of a pair
        value: JsonValue = _READER.decode(text)
    except ValueError as error:
        raise _malformed(_fault_of(body) or str(error)) from error
    return value


def _fault_of(body: bytes) -> str:
    """The fault in pydantic's words, which say more than Python's; empty if it finds none."""
    try:
        from_json(body, allow_inf_nan=False)
    except ValueError as error:
        return str(error)
    return ""


def _malformed(reason: str) -> Refusal:
    errors = (ProblemField(field="body", message=reason),)
    return Refusal(ProblemKind.MALFORMED_JSON, f"The body is not JSON: {reason}. {_RULES}", errors=errors)


def _unique(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    found = dict(pairs)
    if len(found) != len(pairs):
        counted = Counter(name for name, _ in pairs)
        twice = counted.most_common(1)[0][0]
        raise ValueError(f"the name {twice[:100]!r} occurs more than once in an object")
    return found


def _refused(name: str) -> JsonValue:
    raise ValueError(f"{name} is no JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text[:40]} is out of range")
    return number


# Made once: making one takes as long as reading a short body.
_READER = json.JSONDecoder(object_pairs_hook=_unique, parse_float=_finite, parse_constant=_refused)


def require_type(request: Request, *wanted: str) -> str:
    """The media type of the body. Raises Refusal if it is not one of these."""
    header = Message()
    given = request.headers.get("content-type")
    if given in wanted:
        return given
    if given is not None:
        header["content-type"] = given
    found = header.get_content_type()
    if given is None or found not in wanted:
        said = f"it is {given[:100]!r}" if given is not None else "there is none"
        listed = wanted[0] if len(wanted) == 1 else f"one of {', '.join(sorted(wanted))}"
        raise Refusal(ProblemKind.UNSUPPORTED_MEDIA_TYPE, f"The Content-Type must be {listed}; {said}.")
    return found
