"""The key that seals the state that MCP clients keep for the service."""

import secrets

import structlog

from engine.registry.secret_vault import SecretRefusedError
from workers.failures import CannotRun
from workers.state.secrets import SecretSource

_KEY = "MCP_STATE_KEY"
_SHORTEST_KEY = 32

_log = structlog.stdlib.get_logger(__name__)


def state_key_of(source: SecretSource) -> str:
    """The key; made at the first start. If it cannot be written, it lasts as long as this process.

    Raises CannotRun for a key that is too short.
    """
    known = source.resolve(_KEY)
    if known is not None:
        if len(known) < _SHORTEST_KEY:
            remedy = "Give all hosts the same one (`openssl rand -hex 32` makes one), or none: then one is made."
            raise CannotRun(f"TOOL_AGENT_SECRET_{_KEY} has {len(known)} characters; it needs {_SHORTEST_KEY} or more. {remedy}")
        return known
    made = secrets.token_hex(_SHORTEST_KEY)
    try:
        source.keep(_KEY, made)
    except (SecretRefusedError, OSError) as error:
        _log.warning("mcp_state_key_not_kept", reason=str(error))
    return source.resolve(_KEY) or made
