"""An OpenAPI document as a table: one tool per operation, read like those of repositories."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from urllib.parse import urljoin

from pydantic import JsonValue

from engine.external.entries import Listing, Table, left_out, listing_of, owned, tool_id
from engine.making.failures import BuildFailed
from engine.making.openapi.documents.document import OpenApiDocument, Part, part
from engine.making.openapi.sources import remote_sources
from engine.making.openapi.tools import Described, draft
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.sources import RemoteSource
from toolagent.core.failures import TableRefusedError


@dataclass(frozen=True, slots=True)
class _OfTable(Described):
    """A document whose tools have ids of the table."""

    source: str = ""

    def ids(self, names: Sequence[str]) -> list[str]:
        return [tool_id(self.source, name) for name in names]


def is_one(document: JsonValue) -> bool:
    return isinstance(document, dict) and ("openapi" in document or "swagger" in document)


def read(document: JsonValue, table: Table) -> Listing:
    try:
        described = OpenApiDocument.of(document)
        if not described.server_url:
            described = described.served_at(urljoin(table.url, _first_server(described)))
        drafted = draft(
            described, _OfTable(secret_stem(table.source), source=table.source), remote_sources(described, secret_stem(table.source))
        )
    except (ValueError, BuildFailed) as refusal:
        raise TableRefusedError("tools_url", f"Its OpenAPI document has no tools: {str(refusal)[:500]}") from refusal
    found = ((entry.manifest.tool_id, partial(owned, table, _keyed(entry, table))) for entry in drafted.candidate.entries)
    return listing_of(found, [left_out(one.operation, one) for one in drafted.left_out])


def _keyed(entry: ToolEntry, table: Table) -> ToolEntry:
    """The entry with the key of the table, also for a basic login or client credentials."""
    named = f"secret:{table.secret}"
    sources = tuple(
        source.model_copy(update={"remote_api_key": named})
        if table.secret and isinstance(source, RemoteSource) and source.auth_kind in {"basic", "client_credentials"}
        else source
        for source in entry.sources
    )
    return entry.model_copy(update={"sources": sources})


def secret_stem(source: str) -> str:
    """The stem of its secrets' names: `<STEM>_API_KEY`."""
    return f"external_{source}"


def _first_server(document: OpenApiDocument) -> str:
    servers: JsonValue = document.root.get("servers")
    first: Part = part(servers[0]) if isinstance(servers, list) and servers else {}
    return str(first.get("url") or "/")
