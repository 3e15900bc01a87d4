"""Where registered MCP servers and external tables may be, by the settings."""

from engine.external.fetching import ALLOW_SETTING
from engine.runtimes.http.destination import BeforeSending, Destinations, Elsewhere, Judge
from workers.failures import CannotRun
from workers.settings.whole import Settings


def own_ports(settings: Settings) -> frozenset[int]:
    """Those of this service: no registered server may be there."""
    return frozenset(port for port in (settings.front.fastapi_port, settings.mcp.mcp_port) if port is not None)


def server_judge(settings: Settings) -> Judge:
    """Where registered MCP servers may be. Raises CannotRun."""
    try:
        return Elsewhere(BeforeSending(Destinations(settings.calls.mcp_allow, setting="TOOL_AGENT_MCP_ALLOW")), own_ports(settings))
    except ValueError as error:
        raise CannotRun(str(error)) from error


def table_destinations(settings: Settings) -> Destinations:
    """Where external tables and their tools may be. Raises CannotRun."""
    try:
        return Destinations(settings.calls.external_tools_allow, setting=ALLOW_SETTING)
    except ValueError as error:
        raise CannotRun(str(error)) from error
