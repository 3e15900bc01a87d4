"""Reads all catalog files of a data folder; writes only to the vault."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from engine.registry.formats import containers_json, groups_json, mcp_json, registry_json, sources_json, versions_json
from engine.registry.formats.document import Parsed
from engine.registry.secret_vault import SecretVault
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import ToolGroup, ToolManifest
from toolagent.contracts.mcp_servers import McpServerSpec
from toolagent.contracts.sources import ToolSource
from toolagent_service.contracts.containers import ContainerInfo

T = TypeVar("T")
_MAX_FAULTS = 1_000


@dataclass(frozen=True, slots=True)
class CatalogReading:
    """The parsed files. An unreadable file is reported, and its earlier content stays."""

    tools: Parsed[ToolManifest]
    sources: Parsed[tuple[ToolSource, ...]]
    groups: Parsed[ToolGroup]
    containers: Parsed[ContainerInfo]
    versions: Parsed[ToolEntry]
    servers: Parsed[McpServerSpec]

    @property
    def files(self) -> tuple[Parsed[Any], ...]:
        return (self.tools, self.sources, self.groups, self.containers, self.versions, self.servers)


def read_catalog(data_dir: Path, vault: SecretVault, *, expected: bool = True) -> CatalogReading:
    """A missing `registry.json` is a fault, and everything stays. If it exists, other missing files count as empty. Blocks.

    If no folder is `expected`, a missing one is no fault.
    """
    # A wrong folder in the settings must not remove all tools and groups.
    has_catalog = _is_there(data_dir / registry_json.FILE_NAME)

    def read(name: str, parse: Callable[[Path, SecretVault], Parsed[T]]) -> Parsed[T]:
        parsed = (
            parse(data_dir / name, vault) if _is_there(data_dir / name) else Parsed[T](name, vault, readable=has_catalog, is_there=False)
        )
        if (more := len(parsed.faults) - _MAX_FAULTS) > 0:
            del parsed.faults[_MAX_FAULTS:]
            parsed.fault("$", f"{more} more things are wrong with this file.")
        return parsed

    tools = read(registry_json.FILE_NAME, registry_json.parse)
    return CatalogReading(
        tools=tools if has_catalog or not (expected or _is_there(data_dir)) else _no_catalog(data_dir, vault),
        sources=read(sources_json.FILE_NAME, sources_json.parse),
        groups=read(groups_json.FILE_NAME, groups_json.parse),
        containers=read(containers_json.FILE_NAME, containers_json.parse),
        versions=read(versions_json.FILE_NAME, versions_json.parse),
        servers=read(mcp_json.FILE_NAME, mcp_json.parse),
    )


def _is_there(path: Path) -> bool:
    """True also without permission: then reading reports why."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _no_catalog(data_dir: Path, vault: SecretVault) -> Parsed[ToolManifest]:
    missing = "This file is" if data_dir.is_dir() else "The data folder is"
    reason = f"{missing} not there: {str(data_dir.absolute())!r}. Set TOOL_AGENT_DATA_DIR; the tools known so far stay."
    parsed = Parsed[ToolManifest](registry_json.FILE_NAME, vault, readable=False, is_there=False)
    parsed.fault("$", reason)
    return parsed
