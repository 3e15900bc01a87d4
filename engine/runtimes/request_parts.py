"""Where each parameter of a call goes in an HTTP request: into the path, the query or the body."""

import json
import re
from dataclasses import dataclass
from urllib.parse import quote

from pydantic import JsonValue

from engine.runtimes.failures import NotSent
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.sources import HttpMethod

__all__ = ["RequestParts", "request_parts"]

_NAME = re.compile(r"\{([^{}]+)\}")


@dataclass(frozen=True, slots=True)
class RequestParts:
    """`path` is quoted. `body` is JSON, None where the method has none."""

    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None


def request_parts(method: HttpMethod, path: str, params: dict[str, JsonValue]) -> RequestParts:
    """Fill `{name}` in the path; GET and DELETE send the rest as query, the others as a JSON body.

    In a query a list is a repeated key, an object its JSON text, a boolean `true` or `false`, and null is left out.
    Raises NotSent (`validation_error`) for a parameter that is missing in the path or cannot be written.
    """
    used = set(_NAME.findall(path))
    filled = _NAME.sub(lambda found: _segment(found.group(1), params), path)
    rest = {name: value for name, value in params.items() if name not in used}
    if method in ("GET", "DELETE"):
        return RequestParts(filled, tuple((name, text) for name, value in rest.items() for text in _query_texts(value)))
    return RequestParts(filled, body=_json(rest).encode())


def _segment(name: str, params: dict[str, JsonValue]) -> str:
    value = params.get(name)
    if value is None or isinstance(value, (list, dict)):
        said = "is missing" if value is None else "must be a text, a number or a boolean"
        raise _invalid(name, f"{said}: it is part of the path of the request")
    text = _text(value)
    # Empty or dots would lead to another path than the tool's.
    if text in ("", ".", ".."):
        raise _invalid(name, f"cannot be {text!r}: it is part of the path of the request")
    try:
        return quote(text, safe="")
    except UnicodeEncodeError:
        raise _invalid(name, "is no valid text") from None


def _query_texts(value: JsonValue) -> list[str]:
    match value:
        case None:
            return []
        case list():
            return [_text(item) for item in value if item is not None]
        case _:
            return [_text(value)]


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: JsonValue) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
    except (ValueError, RecursionError) as error:
        raise NotSent(ErrorType.VALIDATION_ERROR, f"The parameters cannot be written as JSON: {error}") from error
    return text


def _invalid(name: str, said: str) -> NotSent:
    return NotSent(ErrorType.VALIDATION_ERROR, f"The parameter {name!r} {said}.", {"path": f"$.{name}"})
