"""Settings of the built-in tools."""

from collections.abc import Callable
from dataclasses import dataclass


def _none(_: str) -> None:
    return None


@dataclass(frozen=True, slots=True)
class BuiltinOptions:
    """`http_request_allow` holds host names, addresses and CIDRs that are allowed although they are not public."""

    http_request_allow: tuple[str, ...] = ()
    http_request_max_bytes: int = 1024 * 1024
    """The largest result, in bytes of JSON; longer bodies are cut."""
    max_file_bytes: int = 100 * 1024 * 1024
    """The largest file that a tool may make, in bytes."""
    runcomfy_url: str | None = None
    """The address of RunComfy's server API, without `/users/…`."""
    secrets: Callable[[str], str | None] = _none
    """The value of a secret by its name, or None."""
