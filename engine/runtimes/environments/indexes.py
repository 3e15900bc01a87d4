"""Where packages come from, and how they are had."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from engine.runtimes.process.box import Network, no_network
from toolagent.contracts.sources import ScriptLanguage

_PASSWORD = re.compile(r"//([^/\s@]+)@")


@dataclass(frozen=True, slots=True)
class Index:
    """Where packages come from: patterns of hosts, and variables that tell the installers.

    An address in them may hold a password. What is built is other people's code, which sees what its installer sees: then nothing is built.
    """

    hosts: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def passwords(self) -> tuple[str, ...]:
        """What stands before the host of an address, as a whole."""
        return tuple(found for value in self.variables.values() for found in _PASSWORD.findall(value))


Indexes: TypeAlias = Callable[[ScriptLanguage], Awaitable[Index]]
"""Raises IndexesUnknown."""


@dataclass(frozen=True, slots=True)
class Installer:
    """How packages are had: `indexes` says for a language which hosts they come from, which the installers reach by `network`."""

    indexes: Indexes
    network: Network = no_network
    timeout_s: float = 300.0
