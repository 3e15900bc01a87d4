"""Tools as they are shown: the registry's entries put together with their running state."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from pydantic import JsonValue

from api.bodies import SearchToolsBody
from api.errors import Refusal
from api.ports import Doors
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.http import FoundTool, ListedTool, Matches, Parameter, RuntimeCount, ToolDetail, ToolListing, ToolStates
from toolagent.contracts.identifiers import TOOL_ID_PATTERN
from toolagent.contracts.manifest import JsonSchema
from toolagent.contracts.routes import ControlAction, RunState, ToolControl, ToolRoute
from toolagent.contracts.sources import BackendRuntime, DockerSource, LocalSource, RemoteSource
from toolagent.core.suggestions import nearest

__all__ = ["control", "matches_for", "states_of_tools", "table_of_tools", "tool_detail"]

_RUNTIME_NAMES = {
    BackendRuntime.LOCAL: "本地 Python 运行时",
    BackendRuntime.DOCKER: "Docker 容器运行时",
    BackendRuntime.REMOTE: "远程 API / 云端服务",
}
"""As in seed 000 §4.1."""


async def table_of_tools(doors: Doors) -> ToolListing:
    entries = await doors.registry.list_entries()
    routes = _best(await doors.routes.list_all())
    counts = Counter(entry.manifest.backend_runtime for entry in entries)
    return ToolListing(
        backend_runtimes=tuple(
            RuntimeCount(backend_runtime=one, name=name, tool_count=counts[one]) for one, name in _RUNTIME_NAMES.items()
        ),
        groups=await doors.groups.list_all(),
        tools=tuple(_listed(entry, _route_of(entry, routes)) for entry in entries),
        catalog_faults=await doors.faults.list_all(),
    )


async def states_of_tools(doors: Doors) -> ToolStates:
    entries = {entry.manifest.tool_id: entry for entry in await doors.registry.list_entries()}
    routes = await doors.routes.list_all()
    stopped = entries.keys() - {route.tool_id for route in routes}
    shown = [*(_with_sources(route, entries.get(route.tool_id)) for route in routes), *(_stopped(entries[tool_id]) for tool_id in stopped)]
    return ToolStates(tools=tuple(sorted(shown, key=lambda route: (route.tool_id, route.host or ""))))


async def tool_detail(doors: Doors, tool_id: str) -> ToolDetail:
    """Raises Refusal for a tool that is not there."""
    entry = await _find(doors, tool_id)
    route = await doors.routes.get(tool_id)
    shown = _with_sources(route, entry) if route else _stopped(entry)
    return ToolDetail(**dict(entry.manifest), sources=entry.sources, route=shown)


async def matches_for(doors: Doors, wanted: SearchToolsBody) -> Matches:
    entries = await doors.registry.search(wanted.keyword or "", wanted.category)
    routes = _best(await doors.routes.list_all())
    return Matches(tools=tuple(_found(entry, _route_of(entry, routes)) for entry in entries), total=len(entries))


async def control(doors: Doors, tool_id: str, action: ControlAction) -> ToolRoute:
    """Start a tool where it runs or would be placed; stop or destroy it wherever it is up.

    Raises Refusal for one that is not there or when no host is alive, ControlFailedError.
    """
    entry = await _find(doors, tool_id)
    up = () if action is ControlAction.START else await _hosts_with(doors, tool_id)
    for host in up[1:]:
        await doors.client.control(ToolControl(tool_id=tool_id, action=ControlAction.STOP, host=host))
    host = next(iter(up), None) or await doors.placements.host_for(entry)
    if host is None:
        raise Refusal(ErrorType.UNAVAILABLE, "No host that runs tools is alive: start one with `python -m workers worker`.")
    return await doors.client.control(ToolControl(tool_id=tool_id, action=action, host=host))


async def _hosts_with(doors: Doors, tool_id: str) -> tuple[str, ...]:
    routes = [route for route in await doors.routes.list_all() if route.tool_id == tool_id]
    return tuple(route.host for route in routes if route.host and route.state in (RunState.RUNNING, RunState.STARTING))


async def _find(doors: Doors, tool_id: str) -> ToolEntry:
    # What cannot be an id is not looked up: PostgreSQL fails on a NUL.
    entry = await doors.registry.entry(tool_id) if re.fullmatch(TOOL_ID_PATTERN, tool_id) else None
    if entry is None:
        near = nearest(tool_id[:128], await doors.registry.list_ids())
        hint = f"Did you mean {', '.join(near)}?" if near else "GET /tools lists what there is."
        details: JsonValue = {"nearest": list(near)}
        raise Refusal(ErrorType.TOOL_NOT_FOUND, f"There is no tool {tool_id[:128]!r}. {hint}", details=details)
    return entry


def _best(routes: Iterable[ToolRoute]) -> dict[str, ToolRoute]:
    """One route a tool: a running one before others, else the last."""
    found: dict[str, ToolRoute] = {}
    for route in routes:
        known = found.get(route.tool_id)
        if known is None or known.state is not RunState.RUNNING or route.state is RunState.RUNNING:
            found[route.tool_id] = route
    return found


def _route_of(entry: ToolEntry, routes: dict[str, ToolRoute]) -> ToolRoute:
    return routes.get(entry.manifest.tool_id) or _stopped(entry)


def _stopped(entry: ToolEntry) -> ToolRoute:
    return ToolRoute(tool_id=entry.manifest.tool_id, sources=entry.sources)


def _with_sources(route: ToolRoute, entry: ToolEntry | None) -> ToolRoute:
    return route if route.sources or entry is None else route.model_copy(update={"sources": entry.sources})


def _listed(entry: ToolEntry, route: ToolRoute) -> ListedTool:
    manifest = entry.manifest
    return ListedTool(
        tool_id=manifest.tool_id,
        name=manifest.name,
        description=manifest.description,
        category=manifest.category,
        backend_runtime=manifest.backend_runtime,
        group_ids=manifest.group_ids,
        state=route.state,
        status=manifest.status,
        version=manifest.version,
        tags=manifest.tags,
    )


def _found(entry: ToolEntry, route: ToolRoute) -> FoundTool:
    manifest = entry.manifest
    sources = entry.sources
    source = sources[route.active_source] if 0 <= route.active_source < len(sources) else next(iter(sources), None)
    over_http = source if isinstance(source, LocalSource | DockerSource | RemoteSource) else None
    params = tuple(_parameters(manifest.input_schema))
    return FoundTool(
        tool_id=manifest.tool_id,
        name=manifest.name,
        category=manifest.category,
        description=manifest.description,
        params=params,
        required_params=tuple(param.name for param in params if param.required),
        input_schema=manifest.input_schema,
        output_schema=manifest.output_schema,
        backend_runtime=manifest.backend_runtime,
        host_dir=source.host_dir if isinstance(source, LocalSource) else None,
        endpoint_path=over_http.endpoint_path if over_http else None,
        http_method=over_http.http_method if over_http else None,
        state=route.state,
        port=route.port,
        pid=route.pid,
    )


def _parameters(schema: JsonSchema) -> Iterator[Parameter]:
    properties, required = schema.get("properties"), schema.get("required")
    for name, described in properties.items() if isinstance(properties, dict) else ():
        known = described if isinstance(described, dict) else {}
        description = known.get("description")
        yield Parameter(
            name=name,
            type=_type_of(known.get("type")),
            description=description if isinstance(description, str) else "",
            required=isinstance(required, list) and name in required,
        )


def _type_of(said: JsonValue) -> str:
    match said:
        case str():
            return said
        case list():
            return " | ".join(map(str, said))
        case _:
            return "any"
