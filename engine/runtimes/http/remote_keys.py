"""Keys of a remote tool, for headers and queries."""

import re
from collections.abc import Callable, Iterator, Mapping
from urllib.parse import quote

from engine.runtimes.failures import NotSent
from engine.runtimes.variables import SECRET_IN_A_QUERY
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.identifiers import SECRET_IN_A_HEADER

Secrets = Callable[[str], str | None]
"""The value of a secret by its name without `secret:`, or None."""

_HEADER_TEXT = re.compile(r"[\x20-\x7e]+")


def key_of(named: str | None, secrets: Secrets) -> str | None:
    """The key, looked up anew for each call; None if none is named. Raises NotSent if it is missing or cannot be sent."""
    if named is None:
        return None
    name = named.removeprefix("secret:")
    key = (secrets(name) or "").strip()
    if _HEADER_TEXT.fullmatch(key):
        return key
    raise not_there(name, "cannot be sent in a header: it holds characters outside ASCII" if key else "is not set")


def named_in(headers: Mapping[str, str], secrets: Secrets) -> Iterator[tuple[str, str, str]]:
    """The headers that name a secret: name, scheme with its space (or empty), and the secret. Raises NotSent."""
    for name, value in headers.items():
        if named := re.fullmatch(SECRET_IN_A_HEADER, value):
            yield name, named[1], key_of(named[2], secrets) or ""


def with_keys(headers: Mapping[str, str], secrets: Secrets) -> dict[str, str]:
    """The headers with their secrets. Raises NotSent."""
    return {**headers, **{name: f"{scheme}{key}" for name, scheme, key in named_in(headers, secrets)}}


def filled(path: str, secrets: Secrets) -> tuple[str, tuple[str, ...]]:
    """The path with the secrets that its query names, and these secrets, also in quoted form. Raises NotSent."""
    place, mark, query = path.partition("?")
    found = {name: secrets(name) or "" for name in SECRET_IN_A_QUERY.findall(query)}
    for name, value in found.items():
        if not value:
            raise not_there(name, "is not set")
    query = SECRET_IN_A_QUERY.sub(lambda named: quote(found[named[1]], safe=""), query)
    return place + mark + query, tuple(dict.fromkeys(form for value in found.values() for form in (value, quote(value, safe=""))))


def not_there(name: str, said: str, *, must_be: bool = False) -> NotSent:
    """Says what is wrong with a secret, and which setting to set."""
    remedy = f"Set TOOL_AGENT_SECRET_{name}{' to that' if must_be else ''}."
    return NotSent(
        ErrorType.DEPENDENCY_ERROR,
        f"The secret {name!r} of the remote tool {said}. {remedy}",
        {"secret": name, "setting": f"TOOL_AGENT_SECRET_{name}"},
    )
