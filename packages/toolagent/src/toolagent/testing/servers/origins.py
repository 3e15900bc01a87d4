"""Where a value in a model's tool use comes from: what a tool had made up is another value the next time."""

import json
from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from toolagent.testing.servers.requests import MessagesRequest, ToolOutcomeView

__all__ = ["with_references"]

_LEAST = 6
"""Shorter values are equal by chance."""


def with_references(value: JsonValue, request: MessagesRequest) -> JsonValue:
    """The value with a reference for each string in it that is in the latest result of a tool and had been said by nobody before."""
    rounds = request.outcomes
    now = {path: found for results in rounds for one in results for path, found in _leaves(one.value, one.tool)}
    known = {found: path for path, found in _made_up(request, iter(rounds)) if now.get(path) == found}
    return _replaced(value, {found: f"{{{{ results.{path} }}}}" for found, path in known.items()})


def _made_up(request: MessagesRequest, rounds: Iterator[Sequence[ToolOutcomeView]]) -> Iterator[tuple[str, str]]:
    """What tools were the first to say: the places and the values."""
    said = [request.system_text]
    for message in request.messages:
        results = next(rounds) if message.of_type("tool_result") else ()
        for result in results:
            yield from ((path, found) for path, found in _leaves(result.value, result.tool) if not any(found in text for text in said))
        said.append(message.text)
        said.extend(json.dumps(use.get("input"), ensure_ascii=False) for use in message.of_type("tool_use"))


def _leaves(value: JsonValue, path: str) -> Iterator[tuple[str, str]]:
    match value:
        case dict():
            for key, item in value.items():
                # A key with a dot cannot be named.
                if key.replace("_", "").replace("-", "").isalnum():
                    yield from _leaves(item, f"{path}.{key}")
        case list():
            for place, item in enumerate(value):
                yield from _leaves(item, f"{path}.{place}")
        case str() if len(value) >= _LEAST and "." in path:
            yield path, value
        case _:
            return


def _replaced(value: JsonValue, known: dict[str, str]) -> JsonValue:
    match value:
        case str():
            return known.get(value, value)
        case list():
            return [_replaced(item, known) for item in value]
        case dict():
            return {key: _replaced(item, known) for key, item in value.items()}
        case _:
            return value
