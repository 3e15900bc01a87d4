"""Which user a serving container is: one of its tool's own, when we are root."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from engine.runtimes.docker.parts import DockerParts
from engine.runtimes.docker_engine.settings import DockerSettings
from engine.runtimes.failures import StartFailed
from engine.runtimes.process.box import LevelUnavailable
from engine.runtimes.sandbox.identity import Identity
from toolagent.contracts.calls import ErrorType
from toolagent_service.calls.shared_processes import place_of_volumes


@dataclass(frozen=True, slots=True)
class ContainerUser:
    """`settings` are the host's, with this user. `release` once the container is gone: then the user may be another tool's."""

    settings: DockerSettings
    release: Callable[[], None]

    @property
    def identity(self) -> Identity | None:
        return self.settings.identity


def user_of(parts: DockerParts, place: str, had: str = "") -> ContainerUser:
    """That of the tool that has this place, who gets its volumes; without users of tools, the settings' own.

    `had` is the user, as the engine writes it, of a container that is to be found again: this one, unless another tool took it meanwhile.

    Raises StartFailed, OSError.
    """
    if parts.users is None:
        return ContainerUser(parts.settings, lambda: None)
    # The next owner of this user gives back what lies here.
    folder = parts.settings.kept / "volumes" / place_of_volumes(place)
    folder.mkdir(parents=True, exist_ok=True)
    uid = had.partition(":")[0]
    try:
        taken = parts.users.take(folder, had=int(uid) if uid.isdecimal() else None)
    except LevelUnavailable as error:
        raise StartFailed(ErrorType.UNAVAILABLE, f"The container has no user: {error}.") from error
    try:
        taken.identity.own_all(folder)
    except OSError:
        taken.release()
        raise
    return ContainerUser(replace(parts.settings, identity=taken.identity), taken.release)
