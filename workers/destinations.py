"""The allowed addresses of registered MCP servers and external tables."""

from engine.external.fetching import ALLOW_SETTING
from engine.runtimes.http.destination import BeforeSending, Destinations, Elsewhere, Judge
from workers.failures import cannot_run_on
from workers.settings.whole import Settings


def own_ports(settings: Settings) -> frozenset[int]:
    """The ports of this service, where no registered server may be."""
    return frozenset(port for port in (settings.front.fastapi_port, settings.mcp.mcp_port) if port is not None)


def server_judge(settings: Settings) -> Judge:
    """Judges the addresses of registered MCP servers. Raises CannotRun."""
    with cannot_run_on(ValueError):
        return Elsewhere(BeforeSending(Destinations(settings.calls.mcp_allow, setting="TOOL_AGENT_MCP_ALLOW")), own_ports(settings))


def table_destinations(settings: Settings) -> Destinations:
    """The allowed addresses of external tables and their tools. Raises CannotRun."""
    with cannot_run_on(ValueError):
        return Destinations(settings.calls.external_tools_allow, setting=ALLOW_SETTING)
