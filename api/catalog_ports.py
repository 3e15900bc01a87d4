"""What the front door needs of the catalog: the registry, the search, the concierge. `workers` puts the real things in."""

from collections.abc import Mapping
from typing import Protocol

from pydantic import JsonValue

from engine.registry.matching.texts import Filters
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.versions import ToolVersions
from toolagent.validation.versions import NoSuchVersion
from toolagent_service.contracts.concierge import Reply


class Registry(Protocol):
    """`engine.registry.registry.ToolRegistry` is one."""

    async def get(self, tool_id: str, version: str | None = None) -> ToolManifest | None: ...
    async def entry(self, tool_id: str, version: str | None = None) -> ToolEntry | None: ...
    async def find(self, tool_id: str, wanted: str | None) -> ToolEntry | NoSuchVersion | None: ...
    async def versions(self, tool_id: str) -> ToolVersions | None: ...
    async def activate(self, tool_id: str, version: str) -> bool: ...
    async def roll_back(self, tool_id: str, leaving: str | None = None) -> str | None: ...
    async def deactivate(self, tool_id: str, version: str) -> bool: ...
    async def counts(self) -> tuple[int, int]: ...
    async def list_entries(self) -> tuple[ToolEntry, ...]: ...
    async def list_ids(self) -> tuple[str, ...]: ...


class Search(Protocol):
    """`engine.registry.matching.matching.Matching` is one."""

    async def search(self, keyword: str, filters: Filters, limit: int | None = None) -> tuple[tuple[ToolEntry, ...], int]: ...


class Concierge(Protocol):
    """`engine.concierge.concierge.Concierge` is one."""

    async def answer(self, message: str, context: Mapping[str, JsonValue] | None = None) -> Reply: ...
