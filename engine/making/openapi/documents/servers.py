"""Checks whether the server that a document names may be called."""

from collections.abc import Sequence
from urllib.parse import urlsplit

from engine.making.json_values import items, part
from engine.making.openapi.documents.document import DocumentRefused, OpenApiDocument
from engine.network.addresses import Resolve
from engine.network.public_addresses import ForbiddenAddress, PublicAddresses
from toolagent.core.loopback import is_confidential

_NONE = "It names no server by an absolute address (`servers: [{url: https://…}]`). Say in the task's `server_url` where it is served."
_PORTS = {"http": 80, "https": 443}


def server_fault(document: OpenApiDocument) -> str:
    """Why the document's server cannot be called; empty if nothing speaks against it."""
    if document.server_url:
        return ""
    first = [part(one).get("url", "") for one in items(document.root.get("servers"))[:1]]
    if any("@" in str(url).partition("://")[2].partition("/")[0] for url in first):
        # The address is not repeated, because it is a secret.
        return "The address of its server holds a user name or password. Take it out, and describe it in `securitySchemes`."
    return _NONE


def may_carry_key(url: str) -> bool:
    """Whether a key may be sent to the URL: only the server that it names can read the request."""
    try:
        parts = urlsplit(url)
        is_whole = bool(parts.hostname) and "@" not in parts.netloc and not any(one.isspace() for one in url)
    except ValueError:
        return False
    return is_whole and is_confidential(parts.scheme, parts.hostname)


async def require_public(url: str, private_hosts: Sequence[str], resolve: Resolve) -> None:
    """Raises DocumentRefused if only this machine can reach the address. Hosts among `private_hosts` may be anywhere."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)
    if not host:
        raise DocumentRefused(_NONE)
    allowed = PublicAddresses(private_hosts, resolve)
    if allowed.is_private(host, port):
        return
    try:
        await allowed.of(host, port)
    except ForbiddenAddress as forbidden:
        raise DocumentRefused(
            f"The server {host} that the document names is at {forbidden.address}, which is no public address. "
            f"If that is meant, name {host}:{port} among the private_hosts of the sandbox policy."
        ) from forbidden
    except (OSError, ValueError, OverflowError) as error:  # a TimeoutError is an OSError
        raise DocumentRefused(f"The server {host} that the document names could not be resolved: {error}.") from error
