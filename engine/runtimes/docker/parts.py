"""Dependencies of the docker runtime."""

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from engine.runtimes.auditing.audit import Audit, NoAudit
from engine.runtimes.docker.book import ContainerBook, NoBook
from engine.runtimes.docker.published import PublishedPorts
from engine.runtimes.docker_engine.engine import Engine
from engine.runtimes.docker_engine.settings import DockerSettings
from engine.runtimes.environments.indexes import Index, Indexes
from engine.runtimes.process.ownership import Owner
from engine.runtimes.sandbox.egress import Egress
from engine.runtimes.sandbox.identities import Identities
from engine.runtimes.sandbox.identity import PAYLOAD
from engine.runtimes.sandbox.package_indexes import IndexesUnknown
from toolagent.contracts.sources import ScriptLanguage


async def _nowhere(_language: ScriptLanguage) -> Index:
    return Index()


@dataclass(frozen=True, slots=True)
class DockerParts:
    """The caller closes the engine. `egress` serves containers that run as the settings' user."""

    settings: DockerSettings
    engine: Engine
    egress: Egress
    indexes: Indexes = _nowhere
    """The package index of a language: the hosts that builds may reach."""
    ports: PublishedPorts = field(default_factory=PublishedPorts)
    audit: Audit = field(default_factory=NoAudit)
    book: ContainerBook = field(default_factory=NoBook)
    secrets: Callable[[str], str | None] = lambda _name: None
    """The value of a secret, by its name without `secret:`."""

    users: Identities | None = None
    """Gives each tool's serving container its own user; without it, all run as the settings' user."""

    async def known_index(self) -> Index:
        """The package indexes of all languages together. An unknown index is left out."""
        hosts: dict[str, None] = {}
        variables: dict[str, str] = {}
        for language in (ScriptLanguage.PYTHON, ScriptLanguage.NODEJS):
            with contextlib.suppress(IndexesUnknown):
                index = await self.indexes(language)
                hosts |= dict.fromkeys(index.hosts)
                variables |= index.variables
        return Index(tuple(hosts), variables)

    @classmethod
    def by_default(cls, data: Path, state: Path) -> "DockerParts":
        """The local engine with default settings."""
        identity = PAYLOAD if os.geteuid() == 0 else None
        settings = DockerSettings(data, state, Owner.of_this_process(state), host="", identity=identity)
        return cls(settings, Engine(), Egress(state, settings.policy.private_hosts, identity))
