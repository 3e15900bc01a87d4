"""Tools with their running state: shown, searched, started and stopped."""

import asyncio
from collections import Counter
from collections.abc import Iterable

import structlog

from api.errors import Refusal
from api.ports import Dependencies
from api.reading.bodies import SearchToolsBody
from api.views.found_tools import found_tool
from engine.registry.matching.texts import Filters
from toolagent.client.failures import ControlFailedError
from toolagent.contracts.backend_runtimes import BackendRuntime
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.formats import FormattedTools, ToolFormat
from toolagent.contracts.http import (
    BriefMatches,
    FoundTool,
    ListedTool,
    Matches,
    RuntimeCount,
    SearchDetail,
    ToolDetail,
    ToolListing,
    ToolStates,
)
from toolagent.contracts.manifest import ToolStatus
from toolagent.contracts.routes import ControlAction, RunState, ToolControl, ToolRoute
from toolagent.contracts.sources import HttpSource
from toolagent.core.catalog.briefs import in_brief, parameters_of
from toolagent.core.catalog.namespaces import is_among
from toolagent.core.formats.listing import formatted
from toolagent.core.formats.names import vendor_names

_RUNTIME_NAMES = {
    BackendRuntime.LOCAL: "本地 Python 运行时",
    BackendRuntime.DOCKER: "Docker 容器运行时",
    BackendRuntime.REMOTE: "远程 API / 云端服务",
}

_NO_HOST = "No host takes tools: none is alive, or all drain (GET /hosts). Start one with `python -m workers worker`, or end a drain."

_log = structlog.stdlib.get_logger(__name__)


async def table_of_tools(dependencies: Dependencies, namespace: str | None = None, tag: str | None = None) -> ToolListing:
    entries = [entry for entry in await dependencies.registry.list_entries() if is_among(entry.manifest, namespace, tag)]
    routes = _best(await dependencies.routes.list_all())
    counts = Counter(entry.manifest.backend_runtime for entry in entries)
    return ToolListing(
        backend_runtimes=tuple(
            RuntimeCount(backend_runtime=one, name=name, tool_count=counts[one]) for one, name in _RUNTIME_NAMES.items()
        ),
        groups=await dependencies.groups.list_all(),
        tools=tuple(ListedTool(**dict(entry.manifest), state=_route_of(entry, routes).state) for entry in entries),
        catalog_faults=await dependencies.faults.list_all(),
    )


async def formatted_tools(
    dependencies: Dependencies, form: ToolFormat, namespace: str | None = None, tag: str | None = None
) -> FormattedTools:
    """Active tools in the form of a vendor. Names are unique among all tools, so filters do not change them."""
    manifests = [entry.manifest for entry in await dependencies.registry.list_entries()]
    names = vendor_names(manifest.tool_id for manifest in manifests)
    wanted = [one for one in manifests if one.status is ToolStatus.ACTIVE and is_among(one, namespace, tag)]
    # It takes half a second for ten thousand tools.
    return await asyncio.to_thread(formatted, wanted, names, form)


async def states_of_tools(dependencies: Dependencies) -> ToolStates:
    entries = {entry.manifest.tool_id: entry for entry in await dependencies.registry.list_entries()}
    routes = await dependencies.routes.list_all()
    stopped = entries.keys() - {route.tool_id for route in routes}
    shown = [*(_with_sources(route, entries.get(route.tool_id)) for route in routes), *(_stopped(entries[tool_id]) for tool_id in stopped)]
    return ToolStates(tools=tuple(sorted(shown, key=lambda route: (route.tool_id, route.host or ""))))


async def tool_detail(dependencies: Dependencies, tool_id: str) -> ToolDetail:
    """Raises Refusal for an unknown tool."""
    entry = await found_tool(dependencies, tool_id, dependencies.registry.called)
    route = await dependencies.routes.get(entry.manifest.tool_id)
    shown = _with_sources(route, entry) if route else _stopped(entry)
    return ToolDetail(**dict(entry.manifest), sources=entry.sources, route=shown)


async def matches_for(dependencies: Dependencies, wanted: SearchToolsBody) -> Matches | BriefMatches:
    # HTML forms send empty fields as empty texts. An empty namespace means ids without a namespace.
    filters = Filters(wanted.category or None, wanted.backend_runtime, wanted.tag or None, wanted.group or None, wanted.namespace)
    entries, total = await dependencies.matching.search(wanted.keyword or "", filters, wanted.limit)
    if wanted.detail is SearchDetail.COMPACT:
        return BriefMatches(tools=tuple(in_brief(entry.manifest) for entry in entries), total=total)
    routes = _best(await dependencies.routes.list_all())
    return Matches(tools=tuple(_found(entry, _route_of(entry, routes)) for entry in entries), total=total)


async def control(dependencies: Dependencies, tool_id: str, action: ControlAction) -> ToolRoute:
    """Start a tool where it runs or would be placed; stop it on each host where it is up; destroy it on every host.

    Raises Refusal for an unknown tool or if no host is alive, ControlFailedError.
    """
    entry = await found_tool(dependencies, tool_id, dependencies.registry.entry)
    hosts = await _hosts_for(dependencies, entry, action)
    # All at once, so that no host waits for a silent one.
    outcomes = await asyncio.gather(*(_obeyed(dependencies, ToolControl(tool_id=tool_id, action=action, host=host)) for host in hosts))
    routes = [outcome for outcome in outcomes if isinstance(outcome, ToolRoute)]
    failures = {host: outcome for host, outcome in zip(hosts, outcomes, strict=True) if isinstance(outcome, ControlFailedError)}
    if failures and (action is not ControlAction.DESTROY or not routes):
        raise next(iter(failures.values()))
    # Each host removes the tool from the registry before it stops it, so one success is enough. Other hosts may be dead.
    for host, failure in failures.items():
        _log.warning("tool_not_known_to_be_stopped", tool_id=tool_id, host=host, reason=failure.error.message)
    return routes[0].model_copy(update={"port": _port_of(routes[0])})


async def _obeyed(dependencies: Dependencies, order: ToolControl) -> ToolRoute | ControlFailedError:
    try:
        return await dependencies.client.control(order)
    except ControlFailedError as failure:
        return failure


async def _hosts_for(dependencies: Dependencies, entry: ToolEntry, action: ControlAction) -> tuple[str, ...]:
    """The hosts to control; never empty. A tool is destroyed also where it is being started, or has left a folder."""
    up = set[str]() if action is ControlAction.START else await _hosts_with(dependencies, entry.manifest.tool_id)
    alive = {host.host for host in await dependencies.hosts.list_all() if host.is_alive} if action is ControlAction.DESTROY else set[str]()
    if hosts := sorted(up | alive):
        return tuple(hosts)
    host = await dependencies.placements.host_for(entry)
    if host is None:
        raise Refusal(ErrorType.UNAVAILABLE, _NO_HOST)
    return (host,)


async def _hosts_with(dependencies: Dependencies, tool_id: str) -> set[str]:
    routes = [route for route in await dependencies.routes.list_all() if route.tool_id == tool_id]
    return {route.host for route in routes if route.host and route.state in (RunState.RUNNING, RunState.STARTING)}


def _best(routes: Iterable[ToolRoute]) -> dict[str, ToolRoute]:
    """One route a tool: the last running one, otherwise the last."""
    return {route.tool_id: route for route in sorted(routes, key=lambda route: route.state is RunState.RUNNING)}


def _route_of(entry: ToolEntry, routes: dict[str, ToolRoute]) -> ToolRoute:
    return routes.get(entry.manifest.tool_id) or _stopped(entry)


def _stopped(entry: ToolEntry) -> ToolRoute:
    return ToolRoute(tool_id=entry.manifest.tool_id, sources=entry.sources)


def _with_sources(route: ToolRoute, entry: ToolEntry | None) -> ToolRoute:
    sources = route.sources or (entry.sources if entry else ())
    return route.model_copy(update={"sources": sources, "port": _port_of(route)})


def _port_of(route: ToolRoute) -> int | None:
    """The tool's port on its host. None for a tool in a network of its own, whose port cannot be reached."""
    is_reached = route.endpoint is not None and route.endpoint.startswith(("http://", "https://"))
    return route.port if is_reached else None


def _found(entry: ToolEntry, route: ToolRoute) -> FoundTool:
    manifest = entry.manifest
    sources = entry.sources
    source = sources[route.active_source] if 0 <= route.active_source < len(sources) else next(iter(sources), None)
    over_http = source if isinstance(source, HttpSource) else None
    params = tuple(parameters_of(manifest.input_schema))
    own = {
        "params": params,
        "required_params": tuple(param.name for param in params if param.required),
        "host_dir": source.project if source else None,
        "endpoint_path": over_http.endpoint_path if over_http else None,
        "http_method": over_http.http_method if over_http else None,
        "port": _port_of(route),
    }
    return FoundTool.model_validate({**dict(route), **dict(manifest), **own})
