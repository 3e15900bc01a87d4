"""Whose a key is: one that was set for another server is not sent to the one that a document names."""

from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

from toolagent.contracts.catalog import ToolEntry


def wants_key(entries: Iterable[ToolEntry]) -> bool:
    """Whether one of them shows a secret to a server."""
    return any(True for _ in _servers(entries))


def keys_of_others(made: Iterable[ToolEntry], there: Iterable[ToolEntry]) -> str:
    """Why these tools are not even tried, in words that a person can act on; empty when nothing speaks against it. Blocks."""
    entries = [*there]
    known, wanted = _by_secret(entries), _by_secret(made)
    for secret, server in ((secret, server) for secret, servers in wanted.items() if secret in known for server in servers):
        if server not in known[secret]:
            who = next(entry.manifest.tool_id for entry in entries if secret in _by_secret([entry]))
            return (
                f"The key that {server} wants would be {secret!r}, which {who!r} shows to {', '.join(known[secret])}. "
                "Choose another tool_name, so that it has a secret of its own."
            )
    return ""


def _by_secret(entries: Iterable[ToolEntry]) -> dict[str, dict[str, None]]:
    found: dict[str, dict[str, None]] = {}
    for secret, server in _servers(entries):
        found.setdefault(secret, {})[server] = None
    return found


def _servers(entries: Iterable[ToolEntry]) -> Iterator[tuple[str, str]]:
    """Each secret that is shown to a server, and to which."""
    for source in (source for entry in entries for source in entry.sources):
        for server in map(urlsplit, source.traits.servers):
            yield from ((name, f"{server.scheme}://{server.netloc}") for name in source.traits.secrets)
