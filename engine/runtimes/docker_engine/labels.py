"""Labels that name the owner of a container.

Any user of the engine can write them; `seals.py` decides which to trust.
"""

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
"""Prefix of the names of our images."""

_PREFIX = "org.tool-agent."
STATE = f"{_PREFIX}state"
PLACE = f"{_PREFIX}place"
TOOL = f"{_PREFIX}tool"
IMAGE = f"{_PREFIX}image"
"""The image's name; the engine itself is given the id."""
SEAL = f"{_PREFIX}seal"
_MACHINE = f"{_PREFIX}machine"
_RECIPE = f"{_PREFIX}recipe"
"""On the base image, which all services share."""
_MACHINE_ID = Path("/etc/machine-id")
_NAMES = ("kind", "name", "tool", "version", "host", "owner", "source")


class Kind(StrEnum):
    SERVING = "serving"
    BUILD = "build"
    BOX = "box"
    """One run in the sandbox."""
    GATE = "gate"
    """The network of an image build."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The owner of containers and images: `state` names its state directory; they are useless once the folder `place` is gone."""

    state: str
    place: str
    machine: str

    @classmethod
    def of(cls, state: str, place: Path) -> Self:
        return cls(state, str(place.absolute()), _this_machine())

    @property
    def labels(self) -> dict[str, str]:
        """The labels, with values that need no quotes in a Dockerfile."""
        return {STATE: self.state, PLACE: quote(self.place), _MACHINE: self.machine}

    @classmethod
    def read(cls, labels: Mapping[str, str]) -> Self | None:
        """None if the labels are not ours."""
        try:
            return cls(labels[STATE], unquote(labels[PLACE]), labels[_MACHINE])
        except KeyError:
            return None

    @property
    def is_here(self) -> bool:
        """Whether it is on this machine. Another machine may share the engine; its processes cannot be seen from here."""
        return self.machine == _this_machine()

    @property
    def is_gone(self) -> bool:
        """Whether `place` is gone. A folder that we may not see counts as present."""
        with contextlib.suppress(PermissionError):
            return self.is_here and not Path(self.place).exists()
        return False


@dataclass(frozen=True, slots=True)
class Marks:
    """The labels of one container. `owner` is the mark of the worker that made it; `source` identifies how the tool is run."""

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
        """None if the container is not ours."""
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
    """Whether only this service may set the label."""
    return label.lower().startswith(_PREFIX) and label != _RECIPE


def digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _this_machine() -> str:
    """Identifies this machine. A container that shares our engine counts as another machine: it has its own host name."""
    machine = _MACHINE_ID.read_text(encoding="ascii").strip() if _MACHINE_ID.is_file() else ""
    return digest(platform.node(), machine)
