"""Tables of tools on other hosts, and whose tools are found and called here."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import StringConstraints

from toolagent.contracts.contract import Contract
from toolagent.contracts.identifiers import SecretName

__all__ = ["TABLE_PATTERN", "ExternalTable", "ExternalTables", "LeftOutTool", "RemovedTable", "TableForm", "TableSource"]

TABLE_PATTERN = r"^[a-z][a-z0-9]*(_[a-z0-9]+)*$"

TableSource = Annotated[str, StringConstraints(pattern=TABLE_PATTERN, max_length=40)]
"""What a table is called here; the ids of its tools begin with it. No two of them share the name of a secret."""


class TableForm(StrEnum):
    """What a table's URL answers with."""

    TOOL_AGENT = "tool_agent"
    """The list of another Tool Agent, `GET /tools`."""
    KNOWHUB = "knowhub"
    """The resources of KnowHub, `GET /api/resource`."""
    OPENAPI = "openapi"
    """An OpenAPI document, 3.x or Swagger 2, as JSON or YAML."""


class LeftOutTool(Contract):
    """An entry of a table that is no tool here, or not all of it."""

    entry: str
    """What the table calls it, or where it stands."""
    reason: str


class ExternalTable(Contract):
    """A table, and how its last fetch ended."""

    source: TableSource
    tools_url: str
    api_key: SecretName | None = None
    """The name of the secret that its key is kept as; null: it has none."""
    form: TableForm
    tools: int = 0
    """How many of its tools are in the catalog."""
    left_out: tuple[LeftOutTool, ...] = ()
    """At most 50 of them."""
    left_out_total: int = 0
    registered_at: datetime
    refreshed_at: datetime
    """When it was fetched last with success: its tools are as of then."""
    attempted_at: datetime
    """When it was asked last."""
    error: str = ""
    """Why the last fetch failed; empty: it did not. The tools of the one before stay."""


class ExternalTables(Contract):
    """All tables, by source."""

    tables: tuple[ExternalTable, ...]


class RemovedTable(Contract):
    """A table that is not here any more, and how many tools went with it."""

    source: TableSource
    tools: int
