"""Where a tool runs, in one of three words."""

from enum import StrEnum

__all__ = ["BackendRuntime"]


class BackendRuntime(StrEnum):
    """A source in one of three words."""

    LOCAL = "local"
    DOCKER = "docker"
    REMOTE = "remote"
