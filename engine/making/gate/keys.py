"""Keeps a key that was set for one server from being sent to another server that a document names."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

from toolagent.contracts.catalog import ToolEntry


def wants_key(entries: Iterable[ToolEntry]) -> bool:
    """Whether one of the tools sends a secret to a server."""
    return any(True for _ in _servers(entries))


def keys_of_others(made: Iterable[ToolEntry], there: Iterable[ToolEntry]) -> str:
    """Why the new tools must not be tried, in words that a person can act on; empty if nothing speaks against it. Blocks."""
    known: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for secret, server, tool_id in _servers(there):
        known[secret].setdefault(server, tool_id)
    for secret, server, _ in _servers(made):
        if secret in known and server not in known[secret]:
            first = next(iter(known[secret].values()))
            return (
                f"The key that {server} wants would be {secret!r}, which {first!r} shows to {', '.join(known[secret])}. "
                "Choose another tool_name, so that it has a secret of its own."
            )
    return ""


def _servers(entries: Iterable[ToolEntry]) -> Iterator[tuple[str, str, str]]:
    """Each secret that a tool sends to a server, the server and the tool."""
    for entry in entries:
        for traits in (source.traits for source in entry.sources):
            for server in map(urlsplit, traits.servers):
                yield from ((name, f"{server.scheme}://{server.netloc}", entry.manifest.tool_id) for name in traits.secrets)
