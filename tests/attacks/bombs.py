"""Peers whose answers are small on the way and large when they are unpacked, or never end."""

from collections.abc import Callable

from tests.attacks.attack import Attack, Kind, Target, at_once, expect
from tests.attacks.catalog import peer_tool

__all__ = ["KIND"]

_TOOLS_FAULT = {502, 503, 504}


def _asks(path: str) -> Callable[[Target], str]:
    """The tool that the peer answers at this path: its fault, and in time."""

    def run(target: Target) -> str:
        answer = target.call(peer_tool(path))
        said = answer.json()
        expect(answer.status_code in _TOOLS_FAULT, f"HTTP {answer.status_code}: {answer.text[:200]}")
        return f"{answer.status_code} {said['error_type']}: {said['error']['message'][:60]}"

    return run


def four_at_once(target: Target) -> str:
    return ", ".join(at_once(lambda: _asks("/gzip-twice")(target), 4, 4))


KIND = Kind(
    "bombs",
    (
        Attack("gzip-twice", "a remote tool's answer of some kB that is 1 GiB (`gzip, gzip`)", _asks("/gzip-twice")),
        Attack("four-at-once", "four of them at once", four_at_once),
        Attack("gzip", "the same, packed once", _asks("/gzip")),
        Attack("deflate", "the same by `deflate`", _asks("/deflate")),
        Attack("endless", "an answer that does not end, as fast as it goes", _asks("/endless")),
        Attack("drip", "an answer of a byte now and then, for ever", _asks("/drip")),
        Attack("headers", "headers for ever", _asks("/headers")),
        Attack("cut-short", "a length of a tebibyte, and one byte", _asks("/cut-short")),
        Attack("redirect", "a redirect to itself", _asks("/redirect")),
        Attack("nonsense", "no HTTP", _asks("/nonsense")),
    ),
)
