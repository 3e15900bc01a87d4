"""Which secrets the catalog names."""

from collections.abc import Iterable

from sqlalchemy import literal, select

from engine.store.database import DatabaseAccess
from engine.store.mcp_tables import mcp_servers
from engine.store.tables import catalog_files, containers, external_tables, groups, sources, tool_versions

_TEXTS = (
    mcp_servers.c.document,
    mcp_servers.c.source,
    sources.c.source,
    sources.c.raw,
    tool_versions.c.manifest,
    tool_versions.c.raw,
    groups.c.document,
    groups.c.raw,
    containers.c.document,
    containers.c.raw,
    catalog_files.c.envelope,
    external_tables.c.document,
)


class SecretMentions(DatabaseAccess):
    """Raises StoreUnavailableError."""

    async def of(self, names: Iterable[str]) -> frozenset[str]:
        """Those of these secrets that any text of the catalog names."""
        return frozenset([name for name in names if await self._is_named(name)])

    async def _is_named(self, name: str) -> bool:
        for text in _TEXTS:
            if await self._database.scalar(select(literal(1)).where(text.contains(name, autoescape=True)).limit(1)) is not None:
                return True
        return False
