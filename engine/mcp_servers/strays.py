"""Removal of keys and logins without a server, left by processes that died while they registered, changed or removed one."""

import asyncio
import math
import time
from collections.abc import Collection

import structlog

from engine.registry.formats.server_keys import is_made_for_some_server
from engine.registry.secret_vault import SecretKeeper, SecretRefusedError
from engine.store.mcp_logins import McpLoginRows
from engine.store.secret_mentions import SecretMentions

_EVERY_S = 3600.0
"""Longer than a registration takes: it stores keys and login before the server."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Strays:
    """Keys in the secrets of this host, and logins. Methods raise StoreUnavailableError."""

    def __init__(self, logins: McpLoginRows, mentions: SecretMentions, keys: SecretKeeper, every_s: float = _EVERY_S) -> None:
        self._logins, self._mentions, self._keys, self._every_s = logins, mentions, keys, every_s
        self._before, self._looked_at = frozenset[tuple[str, str]](), -math.inf

    async def round(self) -> tuple[str, ...]:
        """Remove what was a stray already at the last look. Returns a line about each."""
        if (moment := time.monotonic()) - self._looked_at < self._every_s:
            return ()
        made = await asyncio.to_thread(self._made)
        keys = [("key", name) for name in made - await self._mentions.of(made)]
        found = frozenset((*keys, *(("login", name) for name in await self._logins.unregistered())))
        self._before, before, self._looked_at = found, self._before, moment
        return await self._forgotten(sorted(found & before))

    async def _forgotten(self, strays: Collection[tuple[str, str]]) -> tuple[str, ...]:
        for kind, name in strays:
            _log.info("stray_of_mcp_server_removed", kind=kind, name=name)
            if kind == "login":
                await self._logins.forget_unregistered(name)
                continue
            try:
                await asyncio.to_thread(self._keys.forget, name)
            except SecretRefusedError as error:
                _log.warning("key_of_mcp_server_not_removed", secret=name, reason=str(error))
        return tuple(f"MCP server: the {kind} {name} of none was forgotten" for kind, name in strays)

    def _made(self) -> frozenset[str]:
        """Blocks."""
        values = {name: self._keys.resolve(name) for name in self._keys.names()}
        return frozenset(name for name, value in values.items() if value is not None and is_made_for_some_server(name, value))
