"""What the front door serves; a new resource is a module here and a line below."""

from api.routes import batches, calls, catalog, files, health, hosts, search, tasks, tools, versions

__all__ = ["ROUTERS"]

ROUTERS = (
    calls.router,
    batches.router,
    search.router,
    tools.router,
    versions.router,
    catalog.router,
    tasks.router,
    files.router,
    hosts.router,
    health.router,
)
