"""What the engine's settings decide about the built-in tools."""

from collections.abc import Callable
from dataclasses import dataclass


def _none(_: str) -> None:
    return None


@dataclass(frozen=True, slots=True)
class BuiltinOptions:
    """`http_request_allow` holds host names, addresses and CIDRs that may be reached although they are not public."""

    http_request_allow: tuple[str, ...] = ()
    http_request_max_bytes: int = 1024 * 1024
    """Bytes of JSON that the whole result may have; a longer body is cut."""
    max_file_bytes: int = 100 * 1024 * 1024
    """What a file may have that a tool leaves."""
    runcomfy_url: str | None = None
    """Of RunComfy's server API, as far as `/users`."""
    secrets: Callable[[str], str | None] = _none
    """The value of a secret by its name, or None."""
