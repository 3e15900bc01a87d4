"""What a tool's HTTP answer means: a value, or a failure of the call."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import httpx
from pydantic import JsonValue

from engine.network.peers import LargeAnswer, read_at_most
from engine.runtimes.failures import CallFailed, no_answer
from engine.runtimes.http.json_answers import MAX_RESULT_VALUES, TooMuchError, read_json
from toolagent.contracts.calls import ErrorType, ToolError

_ERROR_BODY_BYTES = 64 * 1024
_TOLD_BYTES = 4 * 1024
_MASK = "***"
_MASKED_IN_RESULTS = 8
_LENGTH_DIGITS = 16
_INVALID_PARAMS = 422
_NOT_NOW = 503
_GATEWAY_GAVE_UP = (502, 504)
"""Said by a gateway between us and the tool, which may have acted; 503 refuses a request before anything is done."""
_TOLD_VALUES = 10_000
"""Of an error. It stands deeper in a result than an answer does, and is as shallow as one has to be."""


@dataclass(frozen=True, slots=True)
class Received:
    """An answer, read as far as it may be. `is_whole` is False when there was more; `announced` is its Content-Length, unless packed."""

    status: int
    body: bytes
    is_whole: bool
    announced: int | None = None


async def read(response: httpx.Response, max_result_bytes: int, large: LargeAnswer | None = None) -> Received:
    """Read a result in full or not at all; of an error only the beginning.

    Raises CallFailed for a result that cannot be unpacked, httpx.HTTPError when the connection breaks.
    """
    limit = max_result_bytes if response.is_success else _ERROR_BODY_BYTES
    said = response.headers.get("content-length", "")
    announced = int(said) if said.isdecimal() and len(said) < _LENGTH_DIGITS else None
    if response.is_success and announced is not None and announced > limit:
        return Received(response.status_code, b"", is_whole=False, announced=announced)
    try:
        body, is_whole = await read_at_most(response, limit, large)
    except httpx.DecodingError as error:
        if not response.is_success:
            return Received(response.status_code, b"", is_whole=False)
        raise CallFailed(ErrorType.OUTPUT_VALIDATION_ERROR, f"The tool's answer cannot be read: {error}.", {"limit": limit}) from error
    # A truncated result is of no use.
    return Received(response.status_code, body if is_whole or not response.is_success else b"", is_whole, announced)


def meaning_of(
    received: Received,
    max_result_bytes: int,
    secrets: Sequence[str],
    *,
    through_gateways: bool = False,
    max_values: int = MAX_RESULT_VALUES,
) -> JsonValue:
    """The value that a 2xx carries (null when it has no body). Raises CallFailed for everything else.

    `secrets` are masked wherever the answer repeats them. `through_gateways`: an answer may be one of theirs, not the tool's.
    """
    if not httpx.codes.is_success(received.status):
        if through_gateways and received.status in _GATEWAY_GAVE_UP:
            raise _gave_up(received, secrets)
        raise _failure(received, secrets)
    if not received.is_whole:
        raise CallFailed(
            ErrorType.OUTPUT_VALIDATION_ERROR,
            f"The tool's answer is {_size_in_words(received, max_result_bytes)} of JSON, counted unpacked; "
            f"at most {max_result_bytes} are taken (TOOL_AGENT_MAX_RESULT_BYTES).",
            {"size": received.announced, "limit": max_result_bytes},
        )
    # A very short secret would be found in innocent results.
    body = _masked(received.body, [secret for secret in secrets if len(secret) >= _MASKED_IN_RESULTS])
    if not body.strip():
        return None
    try:
        return read_json(body, max_values)
    except TooMuchError as error:
        raise CallFailed(ErrorType.OUTPUT_VALIDATION_ERROR, f"The tool's answer is not taken: {error}.", error.excess.details) from error
    except ValueError as error:
        raise CallFailed(
            ErrorType.OUTPUT_VALIDATION_ERROR,
            f"The tool's answer is not valid JSON: {error}",
            {"status_code": received.status, "body": _text(body)},
        ) from error


def _size_in_words(received: Received, limit: int) -> str:
    return f"more than {limit} bytes" if received.announced is None else f"{received.announced} bytes"


def _failure(received: Received, secrets: Sequence[str]) -> CallFailed:
    body = _masked(received.body, secrets)
    told = _error_in(body)
    if received.status == _INVALID_PARAMS and told is not None and told.type is ErrorType.VALIDATION_ERROR:
        return CallFailed(ErrorType.VALIDATION_ERROR, told.message, _details_of(told))
    if received.status == _NOT_NOW and told is not None and told.type is ErrorType.UNAVAILABLE:
        return CallFailed(ErrorType.UNAVAILABLE, told.message, _details_of(told))
    message = f"The tool answered with status {received.status}" + (f": {told.message}" if told else ".")
    return CallFailed(ErrorType.EXECUTION_ERROR, message, {"status_code": received.status, "body": _told(body)})


def _details_of(told: ToolError) -> dict[str, JsonValue]:
    return told.details if isinstance(told.details, dict) else {"details": told.details}


def _gave_up(received: Received, secrets: Sequence[str]) -> CallFailed:
    message = f"A gateway before the tool answered with status {received.status}: it is not known what the tool did."
    return no_answer(message, status_code=received.status, body=_told(_masked(received.body, secrets)))


def _error_in(body: bytes) -> ToolError | None:
    """The error of a body in our own form, `{"error": {"type", "message", "details"}}`."""
    try:
        whole: JsonValue = read_json(body, _TOLD_VALUES)
        return ToolError.model_validate(whole.get("error")) if isinstance(whole, dict) else None
    except ValueError:
        return None


def _told(body: bytes) -> JsonValue:
    if len(body) <= _TOLD_BYTES:
        try:
            return read_json(body, _TOLD_VALUES)
        except ValueError:
            return _text(body)
    return _text(body)


def _text(body: bytes) -> str:
    note = "…" if len(body) > _TOLD_BYTES else ""
    return body[:_TOLD_BYTES].decode(errors="replace") + note


def _masked(body: bytes, secrets: Sequence[str]) -> bytes:
    for secret in secrets:
        for form in {secret, json.dumps(secret)[1:-1]}:
            body = body.replace(form.encode(), _MASK.encode())
    return body
