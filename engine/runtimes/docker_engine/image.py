"""What an image says of itself."""

from collections.abc import Mapping
from dataclasses import dataclass

from engine.runtimes.docker_engine.engine import Document

_TCP = "/tcp"


@dataclass(frozen=True, slots=True)
class Image:
    """`ports` are those it exposes. `name` is one of its names, or its id."""

    image_id: str
    name: str
    command: tuple[str, ...]
    user: str
    folder: str
    environment: Mapping[str, str]
    ports: tuple[int, ...]
    triggers: tuple[str, ...] = ()
    """What it does to images that are made from it (ONBUILD)."""
    volumes: tuple[str, ...] = ()
    """What the engine would put on its disk (VOLUME), without a bound."""

    @classmethod
    def read(cls, document: Document) -> "Image":
        config: Document = document.get("Config") or {}
        pairs = (entry.partition("=") for entry in config.get("Env") or ())
        exposed = sorted(int(port.removesuffix(_TCP)) for port in config.get("ExposedPorts") or () if port.endswith(_TCP))
        command = (*(config.get("Entrypoint") or ()), *(config.get("Cmd") or ()))
        return cls(
            str(document["Id"]),
            next(iter(document.get("RepoTags") or ()), str(document["Id"])),
            command,
            config.get("User") or "",
            config.get("WorkingDir") or "/",
            {name: value for name, _, value in pairs},
            tuple(exposed),
            tuple(config.get("OnBuild") or ()),
            tuple(sorted(config.get("Volumes") or ())),
        )
