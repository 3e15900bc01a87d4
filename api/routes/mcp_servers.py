"""MCP servers whose tools are found and called here."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse

from api.documentation import JSON_BODY, UNAVAILABLE, problem_responses
from api.ports import Dependencies, Injected
from api.problems import ProblemKind
from api.reading.bodies import RegisterMcpServerBody
from api.reading.strict_json import StrictRoute
from api.security import LOGIN_PATH
from api.views.logins import login_page
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.mcp_servers import McpServer, McpServers, RemovedMcpServer

router = APIRouter(tags=["tools"], route_class=StrictRoute)

_ONE_SERVER = problem_responses(ProblemKind.SERVER_NOT_FOUND, ErrorType.UNAVAILABLE)


@router.get("/mcp_servers", summary="The MCP servers", responses=UNAVAILABLE)
async def list_mcp_servers(dependencies: Injected) -> McpServers:
    """The servers by name, each with the outcome of the last look."""
    return await dependencies.mcp_servers.list_all()


@router.post(
    "/mcp_servers",
    summary="Take in an MCP server",
    responses=problem_responses(
        *JSON_BODY, ErrorType.SECURITY_ERROR, ProblemKind.SERVER_EXISTS, ProblemKind.SERVER_NOT_REACHED, ErrorType.UNAVAILABLE
    ),
)
async def register_mcp_server(body: RegisterMcpServerBody, request: Request, dependencies: Injected) -> McpServer:
    """The server is started or reached at once, and its tools can be called from then on. Keys become secrets.

    A server that needs a login is kept too: `login_required` is true, and a browser must open `login_url`.
    """
    return await dependencies.mcp_servers.register(body.name, body.spec, _redirect_uri(request, dependencies))


@router.get("/mcp_servers/{name}", summary="An MCP server", responses=_ONE_SERVER)
async def get_mcp_server(name: str, dependencies: Injected) -> McpServer:
    """The server with its tools, those left out, and versions that wait to be activated."""
    return await dependencies.mcp_servers.get(name)


@router.post("/mcp_servers/{name}/refresh", summary="Ask an MCP server for its tools again", responses=_ONE_SERVER)
async def refresh_mcp_server(name: str, dependencies: Injected) -> McpServer:
    """Changed definitions become versions that wait to be activated. If the server is not reached, its tools stay; see `error`."""
    return await dependencies.mcp_servers.refresh(name)


@router.post(
    "/mcp_servers/{name}/login",
    summary="Begin a login at an MCP server",
    responses=problem_responses(
        ProblemKind.SERVER_NOT_FOUND,
        ProblemKind.INVALID_REQUEST,
        ErrorType.SECURITY_ERROR,
        ProblemKind.SERVER_NOT_REACHED,
        ErrorType.UNAVAILABLE,
    ),
)
async def log_in_at_mcp_server(name: str, request: Request, dependencies: Injected) -> McpServer:
    """A browser must open `login_url` before `login_until`; earlier ones are invalid. `client_credentials` need no browser."""
    return await dependencies.mcp_servers.log_in(name, _redirect_uri(request, dependencies))


@router.get(
    LOGIN_PATH,
    summary="Finish a login at an MCP server",
    response_class=HTMLResponse,
    responses={**UNAVAILABLE, 400: {"content": {"text/html": {}}, "description": "Why there is no login."}},
)
async def finish_login(
    dependencies: Injected, state: str = "", code: str = "", iss: str | None = None, error: str = "", error_description: str = ""
) -> HTMLResponse:
    """An authorization server redirects the browser here, which gets a page. Needs no key."""
    said = f"{error} {error_description}".strip()
    return login_page(await dependencies.mcp_servers.finish_login(state, code, iss, said))


@router.delete("/mcp_servers/{name}", summary="Remove an MCP server", responses=_ONE_SERVER)
async def remove_mcp_server(name: str, dependencies: Injected) -> RemovedMcpServer:
    """Its tools and its keys are removed too."""
    return await dependencies.mcp_servers.remove(name)


def _redirect_uri(request: Request, dependencies: Dependencies) -> str:
    return f"{(dependencies.public_url or str(request.base_url)).rstrip('/')}{LOGIN_PATH}"
