"""The front door, put together."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from pydantic_core import to_json
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles

from api.documentation import DESCRIPTION, TAGS, Documented
from api.errors import Refusal, handle_errors
from api.mcp.door import McpDoor
from api.ports import Dependencies
from api.problems import ProblemKind
from api.routes import ROUTERS
from api.security import BODY_SLACK, MAX_BATCH_BYTES, BodyLimit, Gate
from api.views.event_streams import EventStreams

MCP_PATH = "/mcp"
_MCP_METHODS = ["GET", "POST", "DELETE"]

_DOCUMENT = "/openapi.json"
_SCRIPTS = "/docs/static"
"""The page that shows the API has its scripts from here: a machine without internet has one too."""


def create_app(dependencies: Dependencies) -> FastAPI:
    """The HTTP interface before these dependencies. Raises ValueError for an empty API key."""
    if dependencies.api_key == "":
        raise ValueError("An empty API key protects nothing: set TOOL_AGENT_API_KEY to a long random text, or unset it.")
    large = {"/files": dependencies.limits.max_file_bytes + BODY_SLACK, "/run_tools": MAX_BATCH_BYTES + BODY_SLACK}
    # Around its parameters an agent may have said as much again.
    large["/chat"] = dependencies.limits.max_message_bytes + BODY_SLACK
    large["/agent/action"] = 2 * dependencies.limits.max_params_bytes + BODY_SLACK
    app = Documented(
        title="Tool Agent",
        description=DESCRIPTION,
        version="1",
        openapi_tags=TAGS,
        redirect_slashes=False,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        # Nothing here collects it, and each request would look whether somebody does.
        telemetry={"tracing": False, "metrics": False, "logs": False},
        middleware=_middleware(dependencies, large),
    )
    app.state.dependencies = dependencies
    app.state.stopping = asyncio.Event()
    app.state.streams = EventStreams(app.state.stopping)
    handle_errors(app)
    _add_pages(app)
    for router in ROUTERS:
        # Including it would build each of its routes once more: a tenth of a second at the first request.
        app.router.routes.extend(router.routes)
    return app


def create_mcp_app(app: FastAPI) -> Starlette:
    """The MCP server of a front door alone, for a port of its own, while it is `running_mcp`. Whoever may knock there may knock here."""
    dependencies: Dependencies = app.state.dependencies
    alone = Starlette(middleware=_middleware(dependencies, {}), routes=[Route(MCP_PATH, app.state.mcp)])
    alone.state.dependencies, alone.state.stopping = dependencies, app.state.stopping
    handle_errors(alone)
    return alone


@asynccontextmanager
async def running_mcp(app: FastAPI) -> AsyncGenerator[None]:
    """The MCP server of a front door answers until the block ends."""
    dependencies: Dependencies = app.state.dependencies
    door = app.state.mcp = McpDoor(dependencies, app.state.stopping)
    own_port = dependencies.mcp.own_port

    async def elsewhere(_request: Request) -> Response:
        raise Refusal(ProblemKind.ROUTE_NOT_FOUND, f"The MCP server has a port of its own: {own_port} (TOOL_AGENT_MCP_PORT).")

    at_api = door if own_port is None else elsewhere
    app.router.routes.append(Route(MCP_PATH, at_api, methods=None if own_port is None else _MCP_METHODS, include_in_schema=False))
    async with door.running():
        yield


def end_streams(app: Starlette) -> None:
    """The service stops: what would be followed for hours ends, and whoever follows asks again, with what arrived last."""
    stopping: asyncio.Event | None = getattr(app.state, "stopping", None)
    if stopping is not None:
        stopping.set()


def _middleware(dependencies: Dependencies, large: Mapping[str, int]) -> list[Middleware]:
    return [
        Middleware(Gate, api_key=dependencies.api_key, allowed_hosts=dependencies.allowed_hosts),
        Middleware(BodyLimit, default=dependencies.limits.max_params_bytes + BODY_SLACK, by_path=large),
    ]


def _add_pages(app: FastAPI) -> None:
    """Serve `/docs`, drawn by Swagger UI, from `/openapi.json`."""
    making: asyncio.Task[bytes] | None = None

    async def document(_request: Request) -> Response:
        nonlocal making
        # It takes most of a second to make. Whoever calls a tool meanwhile does not wait for it, and it outlives whoever asked first.
        if making is None or (making.done() and (making.cancelled() or making.exception())):
            making = asyncio.create_task(asyncio.to_thread(lambda: to_json(app.openapi())))
        return Response(await asyncio.shield(making), media_type="application/json")

    async def page(_request: Request) -> Response:
        html: HTMLResponse = get_swagger_ui_html(
            openapi_url=_DOCUMENT,
            title=app.title,
            swagger_js_url=f"{_SCRIPTS}/swagger-ui-bundle.js",
            swagger_css_url=f"{_SCRIPTS}/swagger-ui.css",
            swagger_favicon_url=f"{_SCRIPTS}/favicon.png",
        )
        return html

    app.add_route(_DOCUMENT, document, include_in_schema=False)
    app.add_route("/docs", page, include_in_schema=False)
    app.mount(_SCRIPTS, StaticFiles(packages=[("fastapi_offline", "static")]))
