"""Builds tools of the MCP server of a repository: it is started in each way that may be right, until one lists tools."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path, PurePosixPath

from engine.making.building.builder import BuildFailed, Built, Place
from engine.making.mcp_servers.launchers import Start, launcher_of_server, starts_of
from engine.making.node_projects.building import NODE_BRIDGE, prepared_of
from engine.making.node_projects.preparing import NodeProjects
from engine.making.openapi.names import tool_id_of
from engine.making.openapi.operations import LeftOut
from engine.making.openapi.tools import Described
from engine.making.python_projects.launcher import REPOSITORY
from engine.making.python_projects.packing import BRIDGE, WORKING_FOLDER, pack_project
from engine.making.python_projects.preparing import Order, Prepared, PythonProjects
from engine.making.python_sources.wanted import NotWanted
from engine.making.repositories.packaging import Room, copy_into, open_to_all, require_room
from engine.making.uv.runs import LockFailed
from engine.runtimes.failures import RuntimeFailure
from engine.runtimes.mcp.listing import ListedTool, Listing
from engine.runtimes.mcp.runtime import McpRuntime
from engine.runtimes.runtime import Progress
from engine.validation.references import SchemaNotFollowedError, written_out
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.making import Candidate
from toolagent.contracts.manifest import (
    JsonSchema,
    NetworkAccess,
    PermissionClass,
    SecurityContext,
    SideEffectScope,
    ToolGroup,
    ToolManifest,
)
from toolagent.contracts.sources import McpSource, backend_runtime_of
from toolagent.contracts.task_specs import GithubDeploy
from toolagent_service.contracts.plans import McpBuild
from toolagent_service.making.wildcards import chosen, meaningless

_MOST_STARTS = 4
_MOST_NOTES = 3
_MOST_TOOLS = 100
_LONGEST_NAME = 200
_LONGEST_DESCRIPTION = 4_000
_TOLD = 400
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NOT_IN_AN_ID = re.compile(r"[^a-z0-9]+")


class McpBuilder:
    """All that is built is data and files: nothing is registered."""

    def __init__(self, projects: PythonProjects, node: NodeProjects, runtime: McpRuntime, environment: Mapping[str, str]) -> None:
        self._projects, self._node, self._runtime, self._environment = projects, node, runtime, dict(environment)

    async def build(
        self, plan: McpBuild, spec: GithubDeploy, repository: Path, about: Described, place: Place, progress: Progress
    ) -> Built:
        """Raises BuildFailed, ScriptFailure (`UnavailableError`)."""
        if plan.language == "nodejs":
            return await self._of_node(plan, spec, repository, about, place, progress)
        try:
            plan, repository, too_large = await asyncio.to_thread(_with_room, plan, repository)
            site = place.work.with_name("site")
            order = Order(repository, plan.project, (), site, place.work, about.tool_name, needs_package=bool(too_large))
            prepared = await self._projects.prepare(order, progress)
            await asyncio.to_thread(_pack, None if too_large else repository, prepared, plan.project, place.folder)
        except LockFailed as error:
            raise BuildFailed(error.message, error.told) from error
        except (NotWanted, ValueError, OSError) as error:
            raise BuildFailed(f"The project cannot be installed: {error}") from error
        scripts: Mapping[str, str] = prepared.installed.scripts if prepared.installed else {}
        modules = () if too_large else await asyncio.to_thread(_modules, repository, plan.module)
        starts = [
            one
            for over in plan.over
            for one in starts_of((*plan.programs, *scripts), scripts, modules, plan.arguments, over)[:_MOST_STARTS]
        ]
        listing = await self._listed(starts, plan, spec, about, place, progress)
        notes = (*prepared.notes, *([f"Only its package was taken. {too_large}"] if too_large else []))
        return _built(listing, spec, about, place, notes)

    async def _of_node(
        self, plan: McpBuild, spec: GithubDeploy, repository: Path, about: Described, place: Place, progress: Progress
    ) -> Built:
        prepared = await prepared_of(self._node, plan, repository, about, place, progress)
        named = {prepared.programs[name]: name for name in plan.programs if name in prepared.programs}
        files: list[str] = [*dict.fromkeys((*named, *prepared.starts, *prepared.programs.values()))]
        failures: list[str] = []
        manifest = ToolManifest(tool_id=about.tool_name, name=about.tool_name, security_context=_rights(spec))
        # With what its README gives to it, before without.
        ways = [(file, given) for file in files for given in dict.fromkeys((plan.arguments, ()))][:_MOST_STARTS]
        if "http" in plan.over:
            await asyncio.to_thread(_with_bridge, place.folder)
        for over, file, arguments in [(over, *way) for over in plan.over for way in ways]:
            started = ("node", file, *arguments) if over == "stdio" else ("node", NODE_BRIDGE.name, file, *arguments)
            source = McpSource(tool_name="-", host_dir=place.host_dir, command=started, environment=self._environment)
            said = " ".join(("node", file, *arguments, *(("over HTTP",) if over == "http" else ())))
            progress(f"starting the MCP server ({said})")
            try:
                listing = await self._runtime.listed(manifest, source, progress)
            except RuntimeFailure as failure:
                failures.append(f"{said}: {_said(failure)}")
                continue
            if listing.tools:
                return _built(listing, spec, about, place, prepared.notes, source.command)
            failures.append(f"{said}: it lists no tools")
        told = "; ".join(failures) or "nothing was found that could start it"
        noted = "".join(f" Noted: {note}" for note in prepared.notes[:_MOST_NOTES])[:_TOLD]
        raise BuildFailed(f"The MCP server does not start: {told[:1_500]}{noted}", "\n".join(failures))

    async def _listed(
        self, starts: Sequence[Start], plan: McpBuild, spec: GithubDeploy, about: Described, place: Place, progress: Progress
    ) -> Listing:
        """Raises BuildFailed with what came of each start."""
        failures: list[str] = []
        source = McpSource(tool_name="-", host_dir=place.host_dir, environment=self._environment)
        manifest = ToolManifest(tool_id=about.tool_name, name=about.tool_name, security_context=_rights(spec))
        for start in starts:
            progress(f"starting the MCP server ({start.said})")
            try:
                await asyncio.to_thread((place.folder / "main.py").write_text, launcher_of_server(start, plan.project, plan.module))
                listing = await self._runtime.listed(manifest, source, progress)
            except (RuntimeFailure, ValueError) as failure:
                failures.append(f"{start.said}: {_said(failure)}")
                continue
            if listing.tools:
                return listing
            failures.append(f"{start.said}: it lists no tools")
        told = "\n".join(failures) or "nothing was found that could start it"
        raise BuildFailed(f"The MCP server does not start: {'; '.join(failures)[:1_500] or told}", told)


def _with_room(plan: McpBuild, repository: Path) -> tuple[McpBuild, Path, str]:
    """What is brought: the whole repository, else the folder of the server's project.

    Where there is room for neither, why: its package may be smaller.
    """
    try:
        require_room(repository)
    except ValueError as error:
        too_large = str(error)
    else:
        return plan, repository, ""
    project, module = PurePosixPath(plan.project), PurePosixPath(plan.module)
    if not project.parts or not module.is_relative_to(project):
        return plan, repository, too_large
    try:
        require_room(repository / project)
    except ValueError:
        return plan, repository, too_large
    return plan.model_copy(update={"project": "", "module": module.relative_to(project).as_posix()}), repository / project, ""


def _pack(repository: Path | None, prepared: Prepared, project: str, into: Path) -> None:
    pack_project({"main.py": "", **{path.name: path.read_text() for path in (WORKING_FOLDER, BRIDGE)}}, prepared, into)
    if repository is None:
        (into / REPOSITORY / project).mkdir(parents=True)
    else:
        copy_into(repository, into / REPOSITORY, Room())
    open_to_all(into)


def _with_bridge(folder: Path) -> None:
    for path in (NODE_BRIDGE, NODE_BRIDGE.with_name("listening.mjs")):
        (folder / path.name).write_text(path.read_text())
    open_to_all(folder)


def _modules(repository: Path, module: str) -> tuple[str, ...]:
    """The file that makes the server, and before it what runs the package that it is in."""
    program = PurePosixPath(module).with_name("__main__.py").as_posix() if module else ""
    return tuple(dict.fromkeys(one for one in (program, module) if one and (repository / one).is_file()))


def _said(failure: Exception) -> str:
    if not isinstance(failure, RuntimeFailure):
        return str(failure)
    log = failure.details.get("stderr")
    last = [line.strip() for line in log.splitlines() if line.strip()][-1:] if isinstance(log, str) else []
    return " ".join([failure.message, *(f"It said last: {line}" for line in last)])[:_TOLD]


def _rights(spec: GithubDeploy) -> SecurityContext:
    network = NetworkAccess.model_validate({"allow_hosts": spec.hosts})
    return SecurityContext.model_validate({"network_access": network})


def _built(
    listing: Listing, spec: GithubDeploy, about: Described, place: Place, notes: tuple[str, ...], command: tuple[str, ...] = ()
) -> Built:
    left_out = [LeftOut(fault.name or "listing", fault.reason) for fault in listing.faults]
    wanted, unwanted = chosen(listing.tools, spec.operations, lambda tool: (tool.name,))
    if told := meaningless(listing.tools, spec.operations, lambda tool: (tool.name,)):
        raise BuildFailed(f"No tool is meant: {told}")
    left_out += [LeftOut(tool.name, "The task names others in `operations`.") for tool in unwanted]
    left_out += [LeftOut(tool.name, f"There are more than {_MOST_TOOLS} tools; name it in `operations`.") for tool in wanted[_MOST_TOOLS:]]
    tools: list[tuple[ListedTool, JsonSchema, JsonSchema]] = []
    for tool in wanted[:_MOST_TOOLS]:
        try:
            tools.append((tool, written_out(tool.input_schema), written_out(tool.output_schema or {})))
        except SchemaNotFollowedError as error:
            left_out.append(LeftOut(tool.name, f"A schema of it cannot be used: {error}"))
    if not tools:
        raise BuildFailed(f"None of its tools can be used. {'; '.join(f'{one.operation}: {one.reason}' for one in left_out[:5])}")
    try:
        candidate = _candidate(tools, spec, about, McpSource(tool_name="-", host_dir=place.host_dir, command=command))
    except ValueError as error:
        # Names and descriptions are whatever the server says.
        raise BuildFailed(f"What the MCP server says of its tools makes none: {error}") from error
    folders = dict.fromkeys((entry.manifest.tool_id for entry in candidate.entries), place.folder)
    return Built(candidate, folders, tuple(left_out), notes)


def _candidate(
    tools: Sequence[tuple[ListedTool, JsonSchema, JsonSchema]], spec: GithubDeploy, about: Described, server: McpSource
) -> Candidate:
    many = len(tools) > 1
    groups = (about.tool_name,) if many else ()
    ids = ids_of(about.tool_name, [tool.name for tool, _, _ in tools]) if many else [about.tool_name]
    entries: list[ToolEntry] = []
    for (tool, asked, answered), tool_id in zip(tools, ids, strict=True):
        source = server.model_copy(update={"tool_name": tool.name, "process": groups[0] if groups else None})
        said = tool.description.strip() or about.description or f"The tool {tool.name} of an MCP server."
        manifest = ToolManifest(
            tool_id=tool_id,
            name=tool.name[:_LONGEST_NAME],
            description=said[:_LONGEST_DESCRIPTION],
            backend_runtime=backend_runtime_of(source),
            group_ids=groups,
            input_schema=asked,
            output_schema=answered,
            # Its own hints are not believed.
            permission_class=PermissionClass.EXTERNAL,
            side_effect_scope=SideEffectScope.NETWORK if spec.hosts else SideEffectScope.LOCAL_STATE,
            security_context=_rights(spec),
            timeout_s=60.0,
        )
        entries.append(ToolEntry(manifest=manifest, sources=(source,)))
    if not many:
        return Candidate(entries=tuple(entries))
    description = about.description or f"The tools of the MCP server {about.tool_name}."
    group = ToolGroup(group_id=about.tool_name, name=about.tool_name, description=description[:_LONGEST_DESCRIPTION], tool_ids=tuple(ids))
    return Candidate(entries=tuple(entries), group=group)


def ids_of(tool_name: str, names: Sequence[str]) -> list[str]:
    """Names that differ only in signs read the same: the later ones are numbered."""
    found: dict[str, None] = {}
    for name in names:
        word = _NOT_IN_AN_ID.sub("_", _HUMP.sub("_", name[:_LONGEST_NAME]).lower()).strip("_") or "tool"
        numbered = (tool_id_of(tool_name, word if number == 1 else f"{word}_{number}") for number in count(1))
        found[next(one for one in numbered if one not in found)] = None
    return [*found]
