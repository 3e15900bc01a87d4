"""What the engine tells about an image."""

from collections.abc import Mapping
from dataclasses import dataclass

from engine.runtimes.docker_engine.engine import Document

_TCP = "/tcp"


@dataclass(frozen=True, slots=True)
class Image:
    """An image. `ports` are the exposed ones; `name` is one of its names, or its id."""

    image_id: str
    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    ports: tuple[int, ...]
    triggers: tuple[str, ...] = ()
    """Instructions for images based on this one (ONBUILD)."""
    volumes: tuple[str, ...] = ()
    """Folders that the engine would keep on its disk, without a limit (VOLUME)."""

    @classmethod
    def read(cls, document: Document) -> "Image":
        config: Document = document.get("Config") or {}
        pairs = (entry.partition("=") for entry in config.get("Env") or ())
        exposed = sorted(int(port.removesuffix(_TCP)) for port in config.get("ExposedPorts") or () if port.endswith(_TCP))
        return cls(
            str(document["Id"]),
            next(iter(document.get("RepoTags") or ()), str(document["Id"])),
            (*(config.get("Entrypoint") or ()), *(config.get("Cmd") or ())),
            {name: value for name, _, value in pairs},
            tuple(exposed),
            tuple(config.get("OnBuild") or ()),
            tuple(sorted(config.get("Volumes") or ())),
        )
