"""The MCP server of a front door: its port, and its sessions that nobody uses any more."""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import timedelta

import structlog
from fastapi import FastAPI

from api.app import create_mcp_app, running_mcp
from engine.store.mcp_sessions import McpSessionTable
from engine.upkeep.rounds import repeated
from toolagent.core.failures import StoreUnavailableError
from workers.front.door import serving
from workers.grace import Grace
from workers.ports import listen
from workers.settings.whole import Settings

_SWEEP_S = 60.0

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@asynccontextmanager
async def answering_mcp(app: FastAPI, table: McpSessionTable, settings: Settings, grace: Grace) -> AsyncGenerator[None]:
    """Until the block ends. Raises CannotRun when its own port is taken."""
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(running_mcp(app))
        await stack.enter_async_context(_swept(table, timedelta(seconds=settings.mcp.mcp_session_idle_s)))
        port = settings.mcp.mcp_port
        if port is not None and port != settings.front.fastapi_port:
            listener = listen(settings.front.fastapi_host, port, "TOOL_AGENT_MCP_PORT")
            stack.callback(listener.close)
            await stack.enter_async_context(serving(create_mcp_app(app), listener, grace))
        yield


def _swept(table: McpSessionTable, idle: timedelta) -> AbstractAsyncContextManager[None]:
    async def sweep() -> None:
        try:
            if closed := await table.expire(idle):
                _log.info("mcp_sessions_closed", sessions=closed, reason="nobody used them")
        except StoreUnavailableError as error:
            _log.info("mcp_sessions_not_swept", reason=str(error))

    return repeated(sweep, _SWEEP_S, "sweep of MCP sessions")
