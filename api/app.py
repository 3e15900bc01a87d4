"""The front door, put together."""

import asyncio

from fastapi import FastAPI
from starlette.middleware import Middleware

from api.documentation import DESCRIPTION, TAGS, Documented
from api.errors import handle_errors
from api.pages import add_pages
from api.ports import Dependencies
from api.reading.body_limit import BODY_SLACK, MAX_BATCH_BYTES, BodyLimit
from api.routes import ROUTERS
from api.security import Gate

__all__ = ["create_app", "end_streams"]


def create_app(dependencies: Dependencies) -> FastAPI:
    """The HTTP interface before these dependencies. Raises ValueError for an empty API key."""
    if dependencies.api_key == "":
        raise ValueError("An empty API key protects nothing: set TOOL_AGENT_API_KEY to a long random text, or unset it.")
    large = {"/files": dependencies.limits.max_file_bytes + BODY_SLACK, "/run_tools": MAX_BATCH_BYTES + BODY_SLACK}
    # Around its parameters an agent may have said as much again.
    large["/agent/action"] = 2 * dependencies.limits.max_params_bytes + BODY_SLACK
    app = Documented(
        title="Tool Agent",
        description=DESCRIPTION,
        version="1",
        openapi_tags=TAGS,
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
        middleware=[
            Middleware(Gate, api_key=dependencies.api_key, allowed_hosts=dependencies.allowed_hosts),
            Middleware(BodyLimit, default=dependencies.limits.max_params_bytes + BODY_SLACK, by_path=large),
        ],
    )
    app.state.dependencies = dependencies
    app.state.stopping = asyncio.Event()
    handle_errors(app)
    add_pages(app)
    for router in ROUTERS:
        app.include_router(router)
    return app


def end_streams(app: FastAPI) -> None:
    """The service stops: what would be followed for hours ends, and whoever follows asks again, with what arrived last."""
    stopping: asyncio.Event | None = getattr(app.state, "stopping", None)
    if stopping is not None:
        stopping.set()
