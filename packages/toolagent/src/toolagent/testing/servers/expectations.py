"""What a scenario expects of a request, held against what came."""

import json
from collections.abc import Iterator, Sequence

from toolagent.core.catalog.expectations import unexpected
from toolagent.testing.servers.requests import MessagesRequest, ToolOutcomeView
from toolagent.testing.servers.scenario import Expectation

__all__ = ["unmet"]

_SHOWN = 500


def unmet(expected: Expectation, request: MessagesRequest) -> Iterator[str]:
    """Each expectation that the request does not meet: what was expected, and what came."""
    results = request.outcomes[-1] if request.outcomes else ()
    yield from _in_results(expected, results)
    yield from _in_json(expected, results)
    yield from _errors(expected, results)
    yield from _missing(expected.user, request.last_user_text, "the last user message")
    yield from _missing(expected.system, request.system_text, "the system prompt")
    yield from _offered(expected, request)
    yield from _nowhere(expected, request)


def _in_results(expected: Expectation, results: Sequence[ToolOutcomeView]) -> Iterator[str]:
    for words in expected.last_result:
        if not any(words in result.text for result in results):
            yield f"expected {words!r} in the latest tool result; it was {_all(results)}"


def _in_json(expected: Expectation, results: Sequence[ToolOutcomeView]) -> Iterator[str]:
    if expected.last_result_json is None:
        return
    value = results[-1].value if results else None
    for path, wanted, came in unexpected(expected.last_result_json, value):
        yield f"expected {json.dumps(wanted)} at {path} of the latest tool result; there was {_short(json.dumps(came))}"


def _errors(expected: Expectation, results: Sequence[ToolOutcomeView]) -> Iterator[str]:
    if expected.is_error is not None and any(result.is_error for result in results) is not expected.is_error:
        yield f"expected {'an error' if expected.is_error else 'no error'} as the latest tool result; it was {_all(results)}"


def _offered(expected: Expectation, request: MessagesRequest) -> Iterator[str]:
    names = [tool.name for tool in request.tools]
    yield from (f"expected the tool {name!r} to be offered; there are {names}" for name in expected.tools if name not in names)


def _nowhere(expected: Expectation, request: MessagesRequest) -> Iterator[str]:
    if expected.nowhere:
        parts = [json.dumps(part, ensure_ascii=False) for part, _ in request.parts()]
        # In JSON, quotes and line ends are written otherwise.
        for words in expected.nowhere:
            found = [part for part in parts if words in part or json.dumps(words, ensure_ascii=False)[1:-1] in part]
            yield from (f"expected {words!r} nowhere in the request; it is in {_short(part)}" for part in found[:1])


def _missing(expected: Sequence[str], text: str, where: str) -> Iterator[str]:
    yield from (f"expected {words!r} in {where}; it was {_short(text)!r}" for words in expected if words not in text)


def _all(results: Sequence[ToolOutcomeView]) -> str:
    return " and ".join(f"{'error ' if result.is_error else ''}{_short(result.text)!r}" for result in results) or "not there"


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
