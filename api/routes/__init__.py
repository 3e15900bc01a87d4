"""What the front door serves; a new resource is a module here and a line below."""

from api.routes import calls, files, health, search, tasks, tools

__all__ = ["ROUTERS"]

ROUTERS = (
    calls.router,
    search.router,
    tools.router,
    tasks.router,
    files.router,
    health.router,
)
