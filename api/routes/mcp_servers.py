"""MCP servers whose tools are found and called here."""

from fastapi import APIRouter

from api.documentation import JSON_BODY, problem_responses
from api.ports import Injected
from api.problems import ProblemKind
from api.reading.bodies import RegisterMcpServerBody
from api.reading.strict_json import StrictRoute
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.mcp_servers import McpServer, McpServers, RemovedMcpServer

router = APIRouter(tags=["tools"], route_class=StrictRoute)

_ONE_SERVER = problem_responses(ProblemKind.SERVER_NOT_FOUND, ErrorType.UNAVAILABLE)


@router.get("/mcp_servers", summary="The MCP servers", responses=problem_responses(ErrorType.UNAVAILABLE))
async def list_mcp_servers(dependencies: Injected) -> McpServers:
    """By name, each with how the last look at it ended."""
    return await dependencies.mcp_servers.list_all()


@router.post(
    "/mcp_servers",
    summary="Take in an MCP server",
    responses=problem_responses(
        *JSON_BODY, ErrorType.SECURITY_ERROR, ProblemKind.SERVER_EXISTS, ProblemKind.SERVER_NOT_REACHED, ErrorType.UNAVAILABLE
    ),
)
async def register_mcp_server(body: RegisterMcpServerBody, dependencies: Injected) -> McpServer:
    """It is started or reached at once, and its tools are found and called from then on. Keys become secrets."""
    return await dependencies.mcp_servers.register(body.name, body.spec)


@router.get("/mcp_servers/{name}", summary="An MCP server", responses=_ONE_SERVER)
async def get_mcp_server(name: str, dependencies: Injected) -> McpServer:
    """With its tools, what was left out of them, and what waits to be activated."""
    return await dependencies.mcp_servers.get(name)


@router.post("/mcp_servers/{name}/refresh", summary="Ask an MCP server for its tools again", responses=_ONE_SERVER)
async def refresh_mcp_server(name: str, dependencies: Injected) -> McpServer:
    """Changed definitions become versions that wait to be activated. Where it cannot be reached, its tools stay, and `error` says why."""
    return await dependencies.mcp_servers.refresh(name)


@router.delete("/mcp_servers/{name}", summary="Remove an MCP server", responses=_ONE_SERVER)
async def remove_mcp_server(name: str, dependencies: Injected) -> RemovedMcpServer:
    """Its tools and its keys go with it."""
    return await dependencies.mcp_servers.remove(name)
