"""Whose a key is: one that was set for another server is not sent to the one that a document names."""

import re
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.sources import RemoteSource

__all__ = ["keys_of_others", "wants_key"]

_NAMED = re.compile(r"\bsecret:([A-Z][A-Z0-9_]*)")


def wants_key(entries: Iterable[ToolEntry]) -> bool:
    """Whether one of them shows a secret to a server."""
    return any(True for _ in _servers(entries))


def keys_of_others(made: Iterable[ToolEntry], there: Iterable[ToolEntry]) -> str:
    """Why these tools are not even tried, in words that a person can act on; empty when nothing speaks against it. Blocks."""
    wanted = dict(_servers(made))
    for entry in there:
        for secret, server in _servers([entry]):
            if wanted.get(secret, server) != server:
                return (
                    f"The key that {wanted[secret]} wants would be {secret!r}, which {entry.manifest.tool_id!r} shows to {server}. "
                    "Choose another tool_name, so that it has a secret of its own."
                )
    return ""


def _servers(entries: Iterable[ToolEntry]) -> Iterator[tuple[str, str]]:
    """Each secret that is shown to a server, and to which."""
    for source in (source for entry in entries for source in entry.sources):
        if isinstance(source, RemoteSource):
            server = urlsplit(source.remote_url)
            places = (source.remote_api_key or "", source.endpoint_path, source.remote_path, source.remote_url)
            yield from ((name, f"{server.scheme}://{server.netloc}") for place in places for name in _NAMED.findall(place))
