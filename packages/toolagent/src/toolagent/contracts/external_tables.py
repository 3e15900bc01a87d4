"""External tool tables: lists of tools on other hosts, which are found and called here."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import StringConstraints

from toolagent.contracts.contract import Contract
from toolagent.contracts.identifiers import SecretName

__all__ = ["TABLE_PATTERN", "ExternalTable", "ExternalTables", "LeftOutTool", "RemovedTable", "TableForm", "TableSource"]

TABLE_PATTERN = r"^[a-z][a-z0-9]*(_[a-z0-9]+)*$"

TableSource = Annotated[str, StringConstraints(pattern=TABLE_PATTERN, max_length=40)]
"""The name of a table here. The ids of its tools begin with it. No two tables share the name of a secret."""


class TableForm(StrEnum):
    """The form of a table."""

    TOOL_AGENT = "tool_agent"
    """The list of another Tool Agent, `GET /tools`."""
    KNOWHUB = "knowhub"
    """The resources of KnowHub, `GET /api/resource`."""
    OPENAPI = "openapi"
    """An OpenAPI document, 3.x or Swagger 2, as JSON or YAML."""


class LeftOutTool(Contract):
    """An entry of a table that did not become a tool, or not completely."""

    entry: str
    """Its name in the table, or its place."""
    reason: str


class ExternalTable(Contract):
    """A table, and the outcome of its last fetch."""

    source: TableSource
    tools_url: str
    api_key: SecretName | None = None
    """The name of the secret with its key; null without a key."""
    form: TableForm
    tools: int = 0
    """Number of its tools in the catalog."""
    left_out: tuple[LeftOutTool, ...] = ()
    """At most 50 of them."""
    left_out_total: int = 0
    registered_at: datetime
    refreshed_at: datetime
    """The last successful fetch. The tools are as of then."""
    attempted_at: datetime
    """The last attempt to fetch it."""
    error: str = ""
    """Why the last fetch failed; empty if it succeeded. After a failure, the tools of the fetch before stay."""


class ExternalTables(Contract):
    """All tables, by source."""

    tables: tuple[ExternalTable, ...]


class RemovedTable(Contract):
    """A removed table, and the number of tools that were removed with it."""

    source: TableSource
    tools: int
