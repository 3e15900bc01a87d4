"""Turns a tool's HTTP answer into a value, or a failure of the call."""

import codecs
import json
from collections.abc import Sequence
from contextlib import suppress
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
_OWN_ERRORS = {422: ErrorType.VALIDATION_ERROR, 503: ErrorType.UNAVAILABLE}
"""Errors in our own form that are passed on with their type, by status."""
_GATEWAY_GAVE_UP = (502, 504)
"""A gateway before the tool answers so, and the tool may have acted. 503 refuses a request before anything is done."""
TEXT_CODECS = ("utf-8", "utf-16", "utf-32", "ascii", "iso8859", "cp125", "gb", "big5", "shift_jis", "cp932", "euc_", "koi8")
"""How the names of codecs for texts begin. Others, such as `punycode`, take minutes for a megabyte."""
_UTF8 = ("utf-8", "ascii")
_TOLD_VALUES = 10_000
"""The limit of values in an error, which is quoted inside a result."""


@dataclass(frozen=True, slots=True)
class Received:
    """An answer, read up to its limit. `is_whole` is False if there was more; `announced` is its Content-Length, unless packed.

    `charset` is that of a text; empty for other media types.
    """

    status: int
    body: bytes
    is_whole: bool
    announced: int | None = None
    charset: str = ""


def is_text(kind: str) -> bool:
    """Whether a media type, in lower case and without parameters, is a text. The same rule as in the facades of our launchers."""
    return (kind.startswith("text/") and kind != "text/event-stream") or kind == "application/xml" or kind.endswith("+xml")


async def read(response: httpx.Response, max_result_bytes: int, large: LargeAnswer | None = None) -> Received:
    """Reads a result in full or not at all, and the beginning of an error.

    Raises CallFailed if a result cannot be unpacked, httpx.HTTPError if the connection breaks.
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
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    charset = (response.charset_encoding or "utf-8").lower() if is_text(kind) else ""
    return Received(response.status_code, body if is_whole or not response.is_success else b"", is_whole, announced, charset)


def meaning_of(
    received: Received,
    max_result_bytes: int,
    secrets: Sequence[str],
    *,
    through_gateways: bool = False,
    gives_text: bool = False,
    max_values: int = MAX_RESULT_VALUES,
) -> JsonValue:
    """The value of a 2xx answer (None without a body). Raises CallFailed for all others.

    `secrets` are masked wherever the answer repeats them. `through_gateways`: a gateway may have answered in place of the tool.
    `gives_text`: a text is a value, too.
    """
    if not httpx.codes.is_success(received.status):
        body = _masked(received, secrets)
        raise _gave_up(received, body) if through_gateways and received.status in _GATEWAY_GAVE_UP else _failure(received, body)
    if not received.is_whole:
        size = f"more than {max_result_bytes}" if received.announced is None else received.announced
        raise CallFailed(
            ErrorType.OUTPUT_VALIDATION_ERROR,
            f"The tool's answer is {size} bytes of JSON, counted unpacked; "
            f"at most {max_result_bytes} are taken (TOOL_AGENT_MAX_RESULT_BYTES).",
            {"size": received.announced, "limit": max_result_bytes},
        )
    # Very short secrets also occur in unrelated results: they are not masked there.
    body = _masked(received, [secret for secret in secrets if len(secret) >= _MASKED_IN_RESULTS])
    if gives_text and received.charset:
        return _text_or_json(body, max_values)
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


def _text_or_json(body: bytes, max_values: int) -> JsonValue:
    if body[:200].lstrip()[:1] in (b"{", b"["):
        with suppress(ValueError):
            return read_json(body, max_values)
    return body.decode("utf-8", "replace")


def _failure(received: Received, body: bytes) -> CallFailed:
    told = _error_in(body)
    if told is not None and told.type is _OWN_ERRORS.get(received.status):
        details: dict[str, JsonValue] = told.details if isinstance(told.details, dict) else {"details": told.details}
        return CallFailed(told.type, told.message, details)
    message = f"The tool answered with status {received.status}" + (f": {told.message}" if told else ".")
    return CallFailed(ErrorType.EXECUTION_ERROR, message, {"status_code": received.status, "body": _told(body)})


def _gave_up(received: Received, body: bytes) -> CallFailed:
    message = f"A gateway before the tool answered with status {received.status}: it is not known what the tool did."
    return no_answer(message, status_code=received.status, body=_told(body))


def _error_in(body: bytes) -> ToolError | None:
    """The error of a body in our own form, `{"error": {"type", "message", "details"}}`."""
    with suppress(ValueError):
        whole: JsonValue = read_json(body, _TOLD_VALUES)
        return ToolError.model_validate(whole.get("error")) if isinstance(whole, dict) else None


def _told(body: bytes) -> JsonValue:
    """The body for the details of a failure: as JSON if it is short, else the beginning of its text."""
    with suppress(ValueError):
        if len(body) <= _TOLD_BYTES:
            return read_json(body, _TOLD_VALUES)
    return _text(body)


def _text(body: bytes) -> str:
    note = "…" if len(body) > _TOLD_BYTES else ""
    return body[:_TOLD_BYTES].decode(errors="replace") + note


def _masked(received: Received, secrets: Sequence[str]) -> bytes:
    """The body, masked. A text of another charset is converted to UTF-8 and masked again; not all texts are of the charset they name."""
    body = _without(received.body, secrets)
    with suppress(LookupError, ValueError):
        codec = codecs.lookup(received.charset).name
        if codec not in _UTF8 and codec.startswith(TEXT_CODECS):
            return _without(body.decode(codec, "replace").encode(errors="replace"), secrets)
    return body


def _without(body: bytes, secrets: Sequence[str]) -> bytes:
    for secret in secrets:
        for form in {secret, json.dumps(secret)[1:-1]}:
            body = body.replace(form.encode(), _MASK.encode())
    return body
