"""The state from which the catalog files are written."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import JsonValue

from engine.registry.formats.document import Parsed
from engine.registry.secret_vault import SecretVault
from engine.store.catalog_files import CatalogFile
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import ToolGroup
from toolagent.contracts.mcp_servers import McpServerSpec
from toolagent_service.contracts.containers import ContainerInfo

T = TypeVar("T")
Document = dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class KeptVersion:
    """A version of a tool, and its entries in its files.

    `pinned`: its sources must name their archives, because the folder may hold another version.
    """

    entry: ToolEntry
    raw: JsonValue
    source_raws: tuple[JsonValue, ...]
    is_active: bool
    pinned: bool


@dataclass(frozen=True, slots=True)
class CatalogState:
    """The content of the database, and the files as of their last import."""

    versions: tuple[KeptVersion, ...] = ()
    groups: tuple[tuple[ToolGroup, JsonValue], ...] = ()
    containers: tuple[tuple[ContainerInfo, JsonValue], ...] = ()
    servers: tuple[tuple[str, McpServerSpec], ...] = ()
    files: dict[str, CatalogFile] = field(default_factory=dict[str, CatalogFile])

    def active(self) -> dict[str, KeptVersion]:
        """The active versions, by tool id."""
        return {kept.entry.manifest.tool_id: kept for kept in self.versions if kept.is_active}


@dataclass(frozen=True, slots=True)
class CatalogFormat(Generic[T]):
    """Parses and writes one file. `dump` returns None if there was no such file and nothing belongs in it."""

    file_name: str
    parse: Callable[[Path, SecretVault], Parsed[T]]
    dump: Callable[[CatalogState], Document | None]


def in_order(known: dict[str, T], file: CatalogFile | None) -> Iterator[tuple[str, T]]:
    """Entries in the order of the file, then the others."""
    first = [entry_id for entry_id in (file.entry_ids if file else ()) if entry_id in known]
    for entry_id in dict.fromkeys([*first, *known]):
        yield entry_id, known[entry_id]
