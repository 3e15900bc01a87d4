"""The names of the loopback, and which requests only their server can read."""

__all__ = ["LOOPBACK_NAMES", "is_confidential"]

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")


def is_confidential(scheme: str, host: str | None) -> bool:
    """Whether nobody on the way can read a request: it is encrypted, or does not leave this machine."""
    return scheme == "https" or (scheme == "http" and host in LOOPBACK_NAMES)
