"""Secrets that tools were given. A tool may write them; we remove them from what we pass on.

Kept as long as the process lives, as logs are read long after they were written.
"""

import base64
from collections import OrderedDict
from urllib.parse import quote

from pydantic import JsonValue

_SHORTEST = 6
"""Characters: what is shorter would be found in words."""
_MOST = 10_000
_SHOWN = "***"
_given: OrderedDict[str, None] = OrderedDict()


def remember_given(secret: str) -> None:
    """As it is, as it stands in an address, and as HTTP's Basic writes it."""
    if len(secret) < _SHORTEST:
        return
    for form in (secret, quote(secret, safe=""), base64.b64encode(secret.encode()).decode()):
        _given[form] = None
        _given.move_to_end(form)
    while len(_given) > _MOST:
        _given.popitem(last=False)


def without_given(text: str) -> str:
    """The longest first: one may be a part of another."""
    for form in sorted((form for form in _given if form in text), key=len, reverse=True):
        text = text.replace(form, _SHOWN)
    return text


def without_given_value(value: JsonValue) -> JsonValue:
    """As `without_given`, of all texts in it, names too."""
    match value:
        case str():
            return without_given(value)
        case list():
            return [without_given_value(one) for one in value]
        case dict():
            return {without_given(name): without_given_value(one) for name, one in value.items()}
        case _:
            return value
