"""What the front door serves; a new resource is a module here and a line below."""

from api.routes import (
    agent,
    audit,
    batches,
    calls,
    catalog,
    external_tools,
    files,
    groups,
    health,
    hosts,
    knowhub,
    lanes,
    making,
    quarantine,
    schemas,
    search,
    system,
    tasks,
    tools,
    versions,
)

__all__ = ["ROUTERS"]

ROUTERS = (
    calls.router,
    batches.router,
    agent.router,
    search.router,
    external_tools.router,
    knowhub.router,
    tools.router,
    versions.router,
    quarantine.router,
    groups.router,
    making.router,
    catalog.router,
    schemas.router,
    tasks.router,
    files.router,
    hosts.router,
    lanes.router,
    audit.router,
    system.router,
    health.router,
)
