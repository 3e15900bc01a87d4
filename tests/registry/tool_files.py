"""A folder of `*.tool.json` with an importer, on a database of the test."""

import json
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from engine.registry.archives import ProjectArchives
from engine.registry.catalog import CatalogImport
from engine.registry.export import CatalogExport
from engine.registry.tool_files import ToolFolders
from engine.registry.tool_files_import import ToolFilesImport
from engine.store.database import Database
from tests.parts import tool_registry
from tests.registry.importing import files_of
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.records import CatalogFault
from toolagent.contracts.sources import BuiltinSource
from workers.state.secrets import SecretSource

__all__ = ["METHOD", "SCRIPT", "ToolFiles", "tool_file"]

ECHO = ToolEntry(manifest=ToolManifest(tool_id="echo", name="Echo"), sources=(BuiltinSource(handler="echo"),))
METHOD: JsonValue = {"type": "service-method", "serviceName": "ExternalScriptExecutionService", "methodName": "executeScript"}
SCRIPT: dict[str, JsonValue] = {"type": "external-script", "scriptPath": "main.py", "language": "python"}


def tool_file(tool_id: str = "custom:a", version: str = "1.0.0", **more: JsonValue) -> dict[str, JsonValue]:
    """The required fields of a tool file, and more."""
    return {"toolId": tool_id, "displayName": "A", "description": "Does a.", "version": version, "handler": METHOD, **more}


@dataclass
class ToolFiles:
    """`catalog` is the host of the folder; the data folder has an empty registry."""

    database: Database
    root: Path
    catalog: str = "host-1"
    expected: bool = True
    shipped: Path | None = None

    def __post_init__(self) -> None:
        self.data = self.root / f"data-{self.catalog}"
        self.folder = self.data / "tools"
        self.scripts = self.data / "scripts"
        for folder in (self.folder, self.scripts):
            folder.mkdir(parents=True, exist_ok=True)
        self.write_registry()
        self.registry = tool_registry(self.database)
        archives = ProjectArchives(files_of(self.database, self.root))
        where = ToolFolders((self.folder,), self.scripts, self.expected, self.shipped)
        files = ToolFilesImport(self.database, archives, self.catalog, where)
        self.importer = CatalogImport(self.database, archives, SecretSource({}, self.root / "secrets"), self.catalog, files)

    def write_registry(self, *tools: dict[str, JsonValue]) -> None:
        (self.data / "registry.json").write_text(json.dumps({"version": "2.0", "tools": tools}), "utf-8")

    def write(self, name: str, content: dict[str, JsonValue] | str) -> Path:
        path = self.folder / f"{name}.tool.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
        return path

    def write_script(self, name: str, text: str = "print(1)") -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    async def run(self) -> tuple[CatalogFault, ...]:
        return await self.importer.run(self.data, (ECHO,))

    async def faults(self) -> set[tuple[str, str]]:
        """The faults: file, below the folder of tools, and field."""
        return {(fault.file.removeprefix(f"{self.folder.as_posix()}/"), fault.field) for fault in await self.run()}

    async def versions(self, tool_id: str = "custom:a") -> tuple[str | None, set[str]]:
        """The active version of a tool, and all its versions."""
        found = await self.registry.versions(tool_id)
        return (found.active_version, {one.version for one in found.versions}) if found else (None, set())

    async def described(self, tool_id: str = "custom:a", version: str | None = None) -> str | None:
        manifest = await self.registry.get(tool_id, version)
        return manifest.description if manifest else None

    async def exported(self) -> dict[str, dict[str, JsonValue]]:
        return await CatalogExport(self.database).documents()
