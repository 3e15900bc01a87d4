"""What the engine's settings decide about the built-in tools."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BuiltinOptions:
    """`http_request_allow` holds host names, addresses and CIDRs that may be reached although they are not public."""

    http_request_allow: tuple[str, ...] = ()
    http_request_max_bytes: int = 1024 * 1024
    """Bytes of JSON that the whole result may have; a longer body is cut."""
