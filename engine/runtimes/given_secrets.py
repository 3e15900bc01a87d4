"""The secrets given to tools.

A tool may print them, so they are removed from all text that is passed on.

They are kept as long as the process lives, because logs are read long after they were written.
"""

import base64
from collections import OrderedDict
from urllib.parse import quote

from pydantic import JsonValue

from engine.runtimes.cut_secrets import without_parts

_SHORTEST = 6
"""Characters: shorter secrets would match parts of words."""
_MOST = 10_000
_SHOWN = "***"
_given: OrderedDict[str, None] = OrderedDict()


def remember_given(secret: str) -> None:
    """Remember the secret in three forms: plain, quoted for URLs, and base64 for HTTP Basic."""
    if len(secret) < _SHORTEST:
        return
    for form in (secret, quote(secret, safe=""), base64.b64encode(secret.encode()).decode()):
        _given[form] = None
        _given.move_to_end(form)
    while len(_given) > _MOST:
        _given.popitem(last=False)


def without_given(text: str) -> str:
    """The text without given secrets. The longest is replaced first, as one may contain another."""
    # A copy, made at once: meanwhile another thread may remember one.
    given = tuple(_given)
    text = without_parts(text, given)
    for form in sorted((form for form in given if form in text), key=len, reverse=True):
        text = text.replace(form, _SHOWN)
    return text


def without_given_value(value: JsonValue) -> JsonValue:
    """Like `without_given`, for all texts in a value, including names."""
    match value:
        case str():
            return without_given(value)
        case list():
            return [without_given_value(one) for one in value]
        case dict():
            return {without_given(name): without_given_value(one) for name, one in value.items()}
        case _:
            return value
