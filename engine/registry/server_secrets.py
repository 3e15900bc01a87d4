"""Removes secrets made from keys of MCP servers once no server uses them."""

import asyncio

import structlog

from engine.registry.formats.server_keys import is_made_here, secrets_of
from engine.registry.secret_vault import SecretKeeper, SecretRefusedError
from engine.store.mcp_servers import McpServerRows
from toolagent.contracts.mcp_servers import McpServerSpec

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


async def forget_keys(name: str, spec: McpServerSpec, rows: McpServerRows, keys: SecretKeeper) -> None:
    """Remove the secrets made for this spec that no registered server uses. Raises StoreUnavailableError."""
    used = {secret for server in await rows.list_all() for secret in secrets_of(server.spec)}
    for secret in sorted(secrets_of(spec) - used):
        try:
            await asyncio.to_thread(_forget, name, secret, keys)
        except SecretRefusedError as error:
            _log.warning("key_of_mcp_server_not_removed", secret=secret, reason=str(error))


def _forget(name: str, secret: str, keys: SecretKeeper) -> None:
    """Blocks. Raises SecretRefusedError."""
    value = keys.resolve(secret)
    if value is not None and is_made_here(name, secret, value):
        keys.forget(secret)
