"""The user of a serving container: its tool's own, if the worker is root."""

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
    """`settings` are the host's, with this user. Call `release` once the container is gone: another tool may then take the user."""

    settings: DockerSettings
    release: Callable[[], None]

    @property
    def identity(self) -> Identity | None:
        return self.settings.identity


def user_of(parts: DockerParts, place: str, had: str = "") -> ContainerUser:
    """Take the user of the tool with this place, and hand it the tool's volumes. Without users of tools: the settings' user.

    `had`: the user of an existing container, in the engine's form. It is taken again, unless another tool has it by now.

    Raises StartFailed, OSError.
    """
    if parts.users is None:
        return ContainerUser(parts.settings, lambda: None)
    # The next owner of this user takes this folder's files from it.
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
