"""Labels that say whose a container is. Any user of the engine can write them: `seals.py` says which are trusted."""

import contextlib
import hashlib
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Self
from urllib.parse import quote, unquote

from engine.runtimes.process.ownership import Owner

OWN_IMAGES = "tool-agent/"
"""What the names of our images begin with."""

_PREFIX = "org.tool-agent."
STATE = f"{_PREFIX}state"
PLACE = f"{_PREFIX}place"
TOOL = f"{_PREFIX}tool"
IMAGE = f"{_PREFIX}image"
"""The name of the image, which the engine is told by its id."""
SEAL = f"{_PREFIX}seal"
_MACHINE = f"{_PREFIX}machine"
_RECIPE = f"{_PREFIX}recipe"
"""The base image, which all services share."""
_MACHINE_ID = Path("/etc/machine-id")
_NAMES = ("kind", "name", "tool", "version", "host", "owner", "source")


class Kind(StrEnum):
    SERVING = "serving"
    BUILD = "build"
    BOX = "box"
    """One run in the sandbox."""
    GATE = "gate"
    """The network of an image that is being built."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The owner of containers and images: `state` is its state directory, `place` a folder here without which they are useless."""

    state: str
    place: str
    machine: str

    @classmethod
    def of(cls, state: str, place: Path) -> Self:
        return cls(state, str(place.absolute()), _this_machine())

    @property
    def labels(self) -> dict[str, str]:
        """With values that need no quotes in a Dockerfile."""
        return {STATE: self.state, PLACE: quote(self.place), _MACHINE: self.machine}

    @classmethod
    def read(cls, labels: Mapping[str, str]) -> Self | None:
        """None for what is none of ours."""
        try:
            return cls(labels[STATE], unquote(labels[PLACE]), labels[_MACHINE])
        except KeyError:
            return None

    @property
    def is_here(self) -> bool:
        """Whether processes of another machine that shares this engine live, cannot be known."""
        return self.machine == _this_machine()

    @property
    def is_gone(self) -> bool:
        """A folder that we may not see is none that is gone."""
        with contextlib.suppress(PermissionError):
            return self.is_here and not Path(self.place).exists()
        return False


@dataclass(frozen=True, slots=True)
class Marks:
    """`name` is the container's, `owner` the mark of the worker that made it, `source` tells one way of running the tool from another."""

    kind: Kind
    name: str
    tool: str
    version: str
    host: str
    owner: str
    source: str = ""

    @property
    def labels(self) -> dict[str, str]:
        return {f"{_PREFIX}{name}": str(getattr(self, name)) for name in _NAMES}

    @classmethod
    def read(cls, labels: Mapping[str, str]) -> Self | None:
        """None when the container is none of ours."""
        try:
            told = {name: labels[f"{_PREFIX}{name}"] for name in _NAMES}
            return cls(**{**told, "kind": Kind(told["kind"])})  # pyright: ignore[reportArgumentType] - `kind` is one, the others are text
        except (KeyError, ValueError):
            return None

    @property
    def is_orphan(self) -> bool:
        """Whether the worker that made it is gone."""
        owner = Owner.read(self.owner)
        return owner is None or not owner.is_alive()


def is_reserved(label: str) -> bool:
    """Whether only we give it to images and containers, to tell whose they are."""
    return label.lower().startswith(_PREFIX) and label != _RECIPE


def digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _this_machine() -> str:
    """A container that shares our engine is another: it has a name of its own."""
    machine = _MACHINE_ID.read_text(encoding="ascii").strip() if _MACHINE_ID.is_file() else ""
    return digest(platform.node(), machine)
