"""Package indexes, and the access of installers to them."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from engine.runtimes.process.box import Network, no_network
from toolagent.contracts.sources import ScriptLanguage

_PASSWORD = re.compile(r"//([^/\s@]+)@")


@dataclass(frozen=True, slots=True)
class Index:
    """A package index: patterns of its hosts, and variables for the installers.

    The variables may hold passwords. Building a package runs its code, which sees the installer's variables: then nothing is built.
    """

    hosts: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def passwords(self) -> tuple[str, ...]:
        """The credentials in the addresses: everything between `//` and `@`."""
        return tuple(found for value in self.variables.values() for found in _PASSWORD.findall(value))


Indexes: TypeAlias = Callable[[ScriptLanguage], Awaitable[Index]]
"""Raises IndexesUnknown."""


@dataclass(frozen=True, slots=True)
class Installer:
    """`indexes` gives a language's package index, which installers reach through `network`."""

    indexes: Indexes
    network: Network = no_network
    timeout_s: float = 300.0
