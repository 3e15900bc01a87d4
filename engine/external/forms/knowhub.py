"""The resources of KnowHub, `GET /api/resource`: those whose ids are `tools/{category}/{slug}`."""

from functools import partial
from typing import cast, get_args
from urllib.parse import urljoin, urlsplit

from pydantic import JsonValue

from engine.external.entries import Listing, NoTool, Table, listed_tool, listing_of, require_few
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.sources import HttpMethod, RemoteSource
from toolagent_service.knowhub.resources import listed_resources

_PREFIX = "tools/"
_METHODS: tuple[str, ...] = get_args(HttpMethod)


def is_one(document: JsonValue) -> bool:
    found = listed_resources(document)
    return found is not None and any(str(one.get("id")).startswith(_PREFIX) for one in found)


def read(document: JsonValue, table: Table) -> Listing:
    """A resource whose metadata names an `endpoint` is callable; another one is only listed.

    Raises TableRefusedError.
    """
    listed = [(str(one.get("id")), one) for one in listed_resources(document) or ()]
    tools = [(identifier, one) for identifier, one in listed if identifier.startswith(_PREFIX)]
    require_few(len(tools))
    return listing_of((identifier, partial(_tool, identifier, one, table)) for identifier, one in tools)


def _tool(identifier: str, resource: dict[str, JsonValue], table: Table) -> ToolEntry:
    """Raises NoTool."""
    found = resource.get("metadata")
    metadata = found if isinstance(found, dict) else {}
    category, _, slug = identifier.removeprefix(_PREFIX).rpartition("/")
    said: dict[str, JsonValue] = {
        "name": resource.get("title"),
        "description": resource.get("description") or resource.get("body"),
        "category": category,
        "tags": metadata.get("tags"),
        "input_schema": metadata.get("input_schema"),
        "output_schema": metadata.get("output_schema"),
    }
    named = metadata.get("tool_slug")
    try:
        return listed_tool(table, named if isinstance(named, str) and named else slug, said, _call(metadata, table))
    except ValueError as error:  # of a URL or a path
        raise NoTool(str(error)) from error


def _call(metadata: dict[str, JsonValue], table: Table) -> RemoteSource | None:
    """Raises NoTool."""
    endpoint, method = metadata.get("endpoint"), str(metadata.get("http_method") or "POST").upper()
    if not isinstance(endpoint, str) or not endpoint:
        return None
    parts = urlsplit(urljoin(table.url, endpoint))
    if parts.scheme not in {"http", "https"} or not parts.hostname or "@" in parts.netloc or parts.query or "secret:" in endpoint:
        raise NoTool("Its `endpoint` is no http:// or https:// URL without user name, password and query.")
    if method not in _METHODS:
        raise NoTool(f"Its `http_method` is none of {', '.join(_METHODS)}.")
    server = f"{parts.scheme}://{parts.netloc}"
    return RemoteSource(
        remote_url=server,
        endpoint_path=parts.path or "/",
        http_method=cast("HttpMethod", method),
        remote_api_key=table.secret_for(server),
    )
