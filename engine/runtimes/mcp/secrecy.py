"""Masks a server's secrets in everything that it sends."""

from collections.abc import Sequence

from pydantic import JsonValue

_MASK = "***"
_MASKED_IN_VALUES = 8
"""Very short secrets also occur in unrelated texts."""


def masked(value: JsonValue, secrets: Sequence[str]) -> JsonValue:
    """Masks secrets in a JSON value, also in the names of members."""
    known = [secret for secret in secrets if len(secret) >= _MASKED_IN_VALUES]
    return _masked(value, known) if known else value


def masked_text(text: str, secrets: Sequence[str]) -> str:
    """Masks all secrets, also short ones."""
    for secret in secrets:
        text = text.replace(secret, _MASK)
    return text


def _masked(value: JsonValue, secrets: Sequence[str]) -> JsonValue:
    match value:
        case str():
            return masked_text(value, secrets)
        case list():
            return [_masked(one, secrets) for one in value]
        case dict():
            return {masked_text(name, secrets): _masked(one, secrets) for name, one in value.items()}
        case _:
            return value
