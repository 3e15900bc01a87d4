"""Reads the target of a request to the proxy strictly: ambiguous requests are refused."""

import re

import h11

from engine.network.proxy_refusal import Refused
from engine.network.proxy_streams import HTTP, Target

_AUTHORITY = re.compile(
    r"(?:\[(?P<v6>[0-9A-Fa-f:.]{2,45})\]|(?P<name>[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,252}[A-Za-z0-9_.])?))(?::(?P<port>\d{1,5}))?"
)
_ABSOLUTE = re.compile(r"http://(?P<authority>[^/?#]*)(?P<path>/[^#]*|\?[^#]*|)", re.IGNORECASE)
_MAX_PORT = 65_535


def target_of(request: h11.Request) -> Target:
    """Raises Refused."""
    _require_one_length(request)
    text = request.target.decode("ascii", "replace")
    return _tunnel(request, text) if request.method == b"CONNECT" else _absolute(request, text)


def _tunnel(request: h11.Request, text: str) -> Target:
    host, port = _parted(text)
    if port is None:
        raise _bad(f"CONNECT {text} names no port.")
    if any(name in (b"content-length", b"transfer-encoding") for name, _ in request.headers):
        raise _bad("A CONNECT request has no body.")
    return Target(host, port)


def _absolute(request: h11.Request, text: str) -> Target:
    found = _ABSOLUTE.fullmatch(text)
    if not found:
        raise _bad("This is a proxy: it takes CONNECT host:port, and http:// addresses in full. For https:// use CONNECT.")
    host, port = _parted(found["authority"])
    path = found["path"]
    target = Target(host, port or HTTP, path if path.startswith("/") else f"/{path}")
    for name, value in request.headers:
        if name != b"host":
            continue
        named, named_port = _parted(value.decode("ascii", "replace"))
        if named != host or (named_port or HTTP) != target.port:
            raise _bad("The Host header names another host than the address that is asked for.")
    return target


def _parted(authority: str) -> tuple[str, int | None]:
    found = _AUTHORITY.fullmatch(authority)
    port = int(found["port"]) if found and found["port"] else None
    if not found or (port is not None and not 0 < port <= _MAX_PORT):
        raise _bad(f"{authority[:100]!r} is no host, or no host and port.")
    return (found["v6"] or found["name"]).lower().rstrip("."), port


def _require_one_length(request: h11.Request) -> None:
    """h11 refuses different lengths and unknown codings, but allows a length beside a coding."""
    names = [name for name, _ in request.headers]
    if names.count(b"content-length") + names.count(b"transfer-encoding") > 1 or names.count(b"host") > 1:
        raise _bad("The request says more than once how long it is, or which host it is for.")


def _bad(message: str) -> Refused:
    return Refused(400, "http_protocol_error", message)
