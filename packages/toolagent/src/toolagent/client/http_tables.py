"""External tool tables over HTTP."""

from toolagent.client.http_answers import parsed
from toolagent.client.http_paths import segment
from toolagent.client.http_requests import Requests
from toolagent.contracts.external_tables import ExternalTable, ExternalTables, RemovedTable

__all__ = ["TableRequests"]


class TableRequests(Requests):
    """The methods of `ToolAgentHttp` for external tables. They raise as its other methods do."""

    def external_tables(self) -> ExternalTables:
        return parsed(ExternalTables, self._ask("GET", "/external_tools"))

    def add_table(self, source: str, tools_url: str, api_key: str | None = None) -> ExternalTable:
        """Fetch a table and take its tools in."""
        body = {"source": source, "tools_url": tools_url, **({"api_key": api_key} if api_key else {})}
        return parsed(ExternalTable, self._ask("POST", "/external_tools/register", {**body}, unbounded=True))

    def refresh_table(self, source: str) -> ExternalTable:
        """Fetch it again; `error` says where that failed."""
        return parsed(ExternalTable, self._ask("POST", f"/external_tools/{segment(source)}/refresh", unbounded=True))

    def remove_table(self, source: str) -> RemovedTable:
        return parsed(RemovedTable, self._ask("DELETE", f"/external_tools/{segment(source)}"))
