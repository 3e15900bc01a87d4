"""The list of another Tool Agent: its `GET /tools`, with the schemas of its `POST /search_tools`."""

from functools import partial

from pydantic import JsonValue

from engine.external.entries import Listing, NoTool, Table, left_out, listed_tool, listing_of, require_few
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.sources import Envelope, RemoteSource

_PATH = "/tools"


def is_one(document: JsonValue) -> bool:
    return bool(_tools(document)) or (isinstance(document, dict) and document.get("tools") == [])


def wants(document: JsonValue) -> bool:
    """Whether its tools lack schemas, as in `GET /tools`."""
    return not any("input_schema" in one for one in _tools(document))


def service_of(url: str) -> str:
    """The address of the service whose list this is."""
    plain = url.partition("?")[0].partition("#")[0].rstrip("/")
    return plain.removesuffix(_PATH)


def merged(document: JsonValue, found: JsonValue) -> JsonValue:
    """The list, with the schemas that a search gave."""
    known = {str(one.get("tool_id")): one for one in _tools(found)}
    listed = ((one, _tool(one)) for one in _listed(document))
    return {"tools": [{**tool, **_schemas(known.get(str(tool["tool_id"]), {}))} if tool else one for one, tool in listed]}


def read(document: JsonValue, table: Table) -> Listing:
    """The tools, called by `POST /run_tool` of that service. Raises TableRefusedError."""
    listed = _listed(document)
    require_few(len(listed))
    service = service_of(table.url)
    unread = [left_out(f"tools[{at}]", "It has no `tool_id`.") for at, one in enumerate(listed) if _tool(one) is None]
    return listing_of(((str(one["tool_id"]), partial(_entry, one, table, service)) for one in _tools(document)), unread)


def _entry(one: dict[str, JsonValue], table: Table, service: str) -> ToolEntry:
    """Raises NoTool."""
    if one.get("external_source"):
        raise NoTool("It is a tool of another table; register that one.")
    call = RemoteSource(
        remote_url=service,
        endpoint_path="/run_tool",
        remote_api_key=table.secret_for(service),
        envelope=Envelope(params_field="params", fixed={"tool_id": str(one["tool_id"])}, result_field="result"),
    )
    return listed_tool(table, str(one["tool_id"]), one, call)


def _listed(document: JsonValue) -> list[JsonValue]:
    tools = document.get("tools") if isinstance(document, dict) else None
    return tools if isinstance(tools, list) else []


def _tools(document: JsonValue) -> list[dict[str, JsonValue]]:
    return [tool for one in _listed(document) if (tool := _tool(one))]


def _tool(one: JsonValue) -> dict[str, JsonValue] | None:
    """The entry, None if it has no tool id."""
    return one if isinstance(one, dict) and isinstance(one.get("tool_id"), str) and one["tool_id"] else None


def _schemas(found: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {name: found[name] for name in ("input_schema", "output_schema") if name in found}
