"""What the catalog files are written from."""

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
    """A version of a tool, and its entries in the files it came from.

    `pinned`: its sources must name their archives, since the folder of the project may hold another version.
    """

    entry: ToolEntry
    raw: JsonValue
    source_raws: tuple[JsonValue, ...]
    is_active: bool
    pinned: bool


@dataclass(frozen=True, slots=True)
class CatalogState:
    """What is in the database now, and what the files were like when they were imported."""

    versions: tuple[KeptVersion, ...] = ()
    groups: tuple[tuple[ToolGroup, JsonValue], ...] = ()
    containers: tuple[tuple[ContainerInfo, JsonValue], ...] = ()
    servers: tuple[tuple[str, McpServerSpec], ...] = ()
    files: dict[str, CatalogFile] = field(default_factory=dict[str, CatalogFile])

    def active(self) -> dict[str, KeptVersion]:
        """By id."""
        return {kept.entry.manifest.tool_id: kept for kept in self.versions if kept.is_active}


@dataclass(frozen=True, slots=True)
class CatalogFormat(Generic[T]):
    """One file, both ways. `dump` is None when there is nothing to write: no such file came in, and nothing belongs into one."""

    file_name: str
    parse: Callable[[Path, SecretVault], Parsed[T]]
    dump: Callable[[CatalogState], Document | None]


def in_order(known: dict[str, T], file: CatalogFile | None) -> Iterator[tuple[str, T]]:
    """As the file had them, then the others."""
    first = [entry_id for entry_id in (file.entry_ids if file else ()) if entry_id in known]
    for entry_id in dict.fromkeys([*first, *known]):
        yield entry_id, known[entry_id]
