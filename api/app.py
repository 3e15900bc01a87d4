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
from starlette.responses import Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles

from api.documentation import DESCRIPTION, TAGS, Documented
from api.errors import Refusal, handle_errors
from api.mcp.door import McpDoor
from api.ports import Dependencies
from api.problems import ProblemKind
from api.routes import ROUTERS
from api.security import MAX_BATCH_BYTES, BodyLimit, Gate
from api.views.event_streams import EventStreams

MCP_PATH = "/mcp"
_MCP_METHODS = ["GET", "POST", "DELETE"]

_DOCUMENT = "/openapi.json"
_SCRIPTS = "/docs/static"
"""The scripts of `/docs`, served from here so that the page works without internet."""


def create_app(dependencies: Dependencies) -> FastAPI:
    """The HTTP interface of these dependencies. Raises ValueError for an empty API key."""
    if dependencies.api_key == "":
        raise ValueError("An empty API key protects nothing: set TOOL_AGENT_API_KEY to a long random text, or unset it.")
    limits = dependencies.limits
    large = {
        "/files": limits.max_file_bytes,
        "/run_tools": MAX_BATCH_BYTES,
        "/chat": limits.max_message_bytes,
        # The text around the parameters may be as long as these.
        "/agent/action": 2 * limits.max_params_bytes,
    }
    app = Documented(
        title="Tool Agent",
        description=DESCRIPTION,
        version="1",
        openapi_tags=TAGS,
        redirect_slashes=False,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        # No collector is set up, and looking for one would cost each request time.
        telemetry={"tracing": False, "metrics": False, "logs": False},
        middleware=_middleware(dependencies, large),
    )
    app.state.dependencies = dependencies
    app.state.stopping = asyncio.Event()
    app.state.streams = EventStreams(app.state.stopping)
    handle_errors(app)
    _add_pages(app)
    for router in ROUTERS:
        # `include_router` would build each route again: a tenth of a second at the first request.
        app.router.routes.extend(router.routes)
    return app


def create_mcp_app(app: FastAPI) -> Starlette:
    """The MCP server of a front door for a port of its own, with the same access checks. It answers while it is `running_mcp`."""
    dependencies: Dependencies = app.state.dependencies
    alone = Starlette(middleware=_middleware(dependencies, {}), routes=[Route(MCP_PATH, app.state.mcp)])
    alone.state.dependencies, alone.state.stopping = dependencies, app.state.stopping
    handle_errors(alone)
    return alone


@asynccontextmanager
async def running_mcp(app: FastAPI) -> AsyncGenerator[None]:
    """Runs the MCP server of a front door until the block ends."""
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
    """End the event streams because the service stops. Their clients connect again, with the id of the last event."""
    if (stopping := getattr(app.state, "stopping", None)) is not None:
        stopping.set()


def _middleware(dependencies: Dependencies, large: Mapping[str, int]) -> list[Middleware]:
    return [
        Middleware(Gate, api_key=dependencies.api_key, allowed_hosts=dependencies.allowed_hosts),
        Middleware(BodyLimit, default=dependencies.limits.max_params_bytes, by_path=large),
    ]


def _add_pages(app: FastAPI) -> None:
    """Serve `/docs`, drawn by Swagger UI, from `/openapi.json`."""
    making: asyncio.Task[bytes] | None = None

    async def document(_request: Request) -> Response:
        nonlocal making
        # It takes most of a second, so a thread makes it once for all requests, also if the first client goes away.
        if making is None or (making.done() and (making.cancelled() or making.exception())):
            making = asyncio.create_task(asyncio.to_thread(lambda: to_json(app.openapi())))
        return Response(await asyncio.shield(making), media_type="application/json")

    async def page(_request: Request) -> Response:
        return get_swagger_ui_html(
            openapi_url=_DOCUMENT,
            title=app.title,
            swagger_js_url=f"{_SCRIPTS}/swagger-ui-bundle.js",
            swagger_css_url=f"{_SCRIPTS}/swagger-ui.css",
            swagger_favicon_url=f"{_SCRIPTS}/favicon.png",
        )

    app.add_route(_DOCUMENT, document, include_in_schema=False)
    app.add_route("/docs", page, include_in_schema=False)
    app.mount(_SCRIPTS, StaticFiles(packages=[("fastapi_offline", "static")]))
