"""Masks secrets that a tool or a server was given in everything that it sends."""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from pydantic import JsonValue

from engine.runtimes.cut_secrets import without_parts
from engine.validation.long_values import walked
from toolagent.contracts.contract import JsonSchema
from toolagent.core.schemas import mentions_secrets, secret_values

_MASK = "***"
_MASKED_IN_VALUES = 8
"""Characters. Shorter secrets also occur in unrelated texts."""
_MOST = 100
"""Secrets of a call. Each is looked for in all that an error says."""
_SHORTEST = 4
"""Characters. A shorter parameter occurs in almost every text."""


def secrets_of(schema: JsonSchema, params: dict[str, JsonValue]) -> tuple[str, ...]:
    """The texts of the longest secret parameters of a call, as they are and as JSON writes them. Longest first."""
    texts = {text for value in secret_values(schema, params) for text in _texts(value) if len(text) >= _SHORTEST}
    most = sorted(texts, key=len, reverse=True)[:_MOST]
    written = {json.dumps(text, ensure_ascii=is_ascii)[1:-1] for text in most for is_ascii in (True, False)}
    return tuple(sorted({*most, *written}, key=len, reverse=True))


async def find_secrets(schema: JsonSchema, params: dict[str, JsonValue]) -> tuple[str, ...]:
    """`secrets_of` without blocking the event loop."""
    return await walked(params, partial(secrets_of, schema, params)) if mentions_secrets(schema) else ()


def masked(value: JsonValue, secrets: Sequence[str]) -> JsonValue:
    """Masks secrets in what a server answers, also in the names of members. Numbers stay, because the answer must fit its schema."""
    known = [secret for secret in secrets if len(secret) >= _MASKED_IN_VALUES]
    return _changed(value, partial(masked_text, secrets=known), lambda number: number) if known else value


def masked_text(text: str, secrets: Sequence[str]) -> str:
    """Masks all secrets, also short ones."""
    for secret in secrets:
        text = text.replace(secret, _MASK)
    return text


def hidden(value: JsonValue, secrets: Sequence[str]) -> JsonValue:
    """Masks all secrets in the details of an error, also short ones, in the names of members, and numbers that are one."""
    return _changed(value, partial(hidden_text, secrets=secrets), lambda number: _MASK if str(number) in secrets else number)


def hidden_text(text: str, secrets: Sequence[str]) -> str:
    """Masks all secrets in a text of an error, also short ones, and a part of one that a cut has left."""
    return masked_text(without_parts(text, secrets), secrets)


def _changed(value: JsonValue, text: Callable[[str], str], number: Callable[[float], JsonValue]) -> JsonValue:
    match value:
        case str():
            return text(value)
        case list():
            return [_changed(one, text, number) for one in value]
        case dict():
            return {text(name): _changed(one, text, number) for name, one in value.items()}
        case None | bool():
            return value
        case _:
            return number(value)


def _texts(value: JsonValue) -> Iterator[str]:
    match value:
        case dict() | list():
            for one in value.values() if isinstance(value, dict) else value:
                yield from _texts(one)
        case None | bool():
            return
        case _:
            yield str(value)
