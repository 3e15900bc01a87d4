"""The key of what MCP clients carry for the service."""

import secrets

import structlog

from engine.registry.secret_vault import SecretRefusedError
from workers.state.secrets import SecretSource

_KEY = "MCP_STATE_KEY"
_SHORTEST_KEY = 32

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def state_key_of(source: SecretSource) -> str:
    """The secret that seals which call an MCP client continues; made at the first start. One that cannot be kept lasts as long as we do."""
    known = source.resolve(_KEY)
    if known is not None and len(known) >= _SHORTEST_KEY:
        return known
    made = secrets.token_hex(_SHORTEST_KEY)
    try:
        source.keep(_KEY, made)
    except (SecretRefusedError, OSError) as error:
        _log.warning("mcp_state_key_not_kept", reason=str(error))
    return source.resolve(_KEY) or made
