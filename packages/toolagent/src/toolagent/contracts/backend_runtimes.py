"""Where a tool runs."""

from enum import StrEnum

__all__ = ["BackendRuntime"]


class BackendRuntime(StrEnum):
    """Where a tool runs: on a host of the service, in a container, or elsewhere."""

    LOCAL = "local"
    DOCKER = "docker"
    REMOTE = "remote"
