"""The routes of the front door.

A new resource is a module here and a line below.
"""

from api.routes import (
    agent,
    agent_chat,
    audit,
    batches,
    calls,
    catalog,
    chats,
    external_tools,
    files,
    groups,
    health,
    hosts,
    im,
    knowhub,
    lanes,
    making,
    mcp_servers,
    quarantine,
    records,
    schemas,
    search,
    system,
    tasks,
    tools,
    versions,
)

__all__ = ["ROUTERS"]

ROUTERS = (
    # Frequent requests first, because a request is compared with each route before its own.
    calls.router,
    groups.router,
    batches.router,
    agent.router,
    agent_chat.router,
    search.router,
    external_tools.router,
    mcp_servers.router,
    im.router,
    knowhub.router,
    tools.router,
    versions.router,
    quarantine.router,
    making.router,
    catalog.router,
    schemas.router,
    tasks.router,
    chats.router,
    files.router,
    hosts.router,
    lanes.router,
    records.router,
    audit.router,
    system.router,
    health.router,
)
