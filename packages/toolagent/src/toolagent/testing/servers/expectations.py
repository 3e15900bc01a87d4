"""Compares a request with the expectations of a scenario."""

import json
from collections.abc import Iterator, Sequence

from toolagent.core.catalog.expectations import unexpected
from toolagent.core.texts import shortened
from toolagent.testing.servers.requests import MessagesRequest, ToolOutcomeView
from toolagent.testing.servers.scenario import Expectation

__all__ = ["unmet"]

_SHOWN = 500


def unmet(expected: Expectation, request: MessagesRequest) -> Iterator[str]:
    """Each expectation that the request does not meet: what was expected, and what came."""
    yield from _in_results(expected, request.outcomes[-1] if request.outcomes else ())
    yield from _missing(expected.user, request.last_user_text, "the last user message")
    yield from _missing(expected.system, request.system_text, "the system prompt")
    names = [tool.name for tool in request.tools]
    yield from (f"expected the tool {name!r} to be offered; there are {names}" for name in expected.tools if name not in names)
    if expected.nowhere:
        yield from _nowhere(expected.nowhere, [json.dumps(part, ensure_ascii=False) for part, _ in request.parts()])


def _in_results(expected: Expectation, results: Sequence[ToolOutcomeView]) -> Iterator[str]:
    came = " and ".join(f"{'error ' if one.is_error else ''}{shortened(one.text, _SHOWN)!r}" for one in results) or "not there"
    for words in expected.last_result:
        if not any(words in result.text for result in results):
            yield f"expected {words!r} in the latest tool result; it was {came}"
    if expected.last_result_json is not None:
        for path, wanted, given in unexpected(expected.last_result_json, results[-1].value if results else None):
            there = shortened(json.dumps(given), _SHOWN)
            yield f"expected {json.dumps(wanted)} at {path} of the latest tool result; there was {there}"
    if expected.is_error not in {None, any(result.is_error for result in results)}:
        yield f"expected {'an error' if expected.is_error else 'no error'} as the latest tool result; it was {came}"


def _nowhere(expected: Sequence[str], parts: Sequence[str]) -> Iterator[str]:
    for words in expected:
        # JSON escapes quotes and line ends.
        forms = (words, json.dumps(words, ensure_ascii=False)[1:-1])
        if found := next((part for part in parts if any(form in part for form in forms)), None):
            yield f"expected {words!r} nowhere in the request; it is in {shortened(found, _SHOWN)}"


def _missing(expected: Sequence[str], text: str, where: str) -> Iterator[str]:
    yield from (f"expected {words!r} in {where}; it was {shortened(text, _SHOWN)!r}" for words in expected if words not in text)
