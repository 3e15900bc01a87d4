"""Whose a container is: labels that tell it to whoever finds it later."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from engine.runtimes.ownership import Owner

__all__ = ["STATE", "Kind", "Marks", "digest"]

_PREFIX = "org.tool-agent."
STATE = f"{_PREFIX}state"
_NAMES = ("kind", "name", "tool", "version", "host", "owner", "source")


class Kind(StrEnum):
    SERVING = "serving"
    BUILD = "build"
    BOX = "box"
    """One run in the sandbox."""


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
        owner = Owner.read(self.owner)
        return {STATE: owner.state if owner else "", **{f"{_PREFIX}{name}": str(getattr(self, name)) for name in _NAMES}}

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


def digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
