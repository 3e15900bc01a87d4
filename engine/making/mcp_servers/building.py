"""Builds tools from a repository's MCP server: tries ways to start the server until one lists tools."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath

from engine.making.boxes import last_line_of
from engine.making.building.builds import Built, Job
from engine.making.failures import NOT_NAMED, BuildFailed, LeftOut, failing
from engine.making.mcp_servers.launchers import Start, launcher_of_server, starts_of
from engine.making.node_projects.preparing import NodeProjects
from engine.making.openapi.names import plain_word
from engine.making.openapi.tools import LONGEST_DESCRIPTION, LONGEST_NAME
from engine.making.openapi.unused_names import unused
from engine.making.python_projects.launcher import REPOSITORY
from engine.making.python_projects.packing import BRIDGE, WORKING_FOLDER, pack_project
from engine.making.python_projects.preparing import Order, Prepared, PythonProjects
from engine.making.repositories.packaging import Room, copy_into, open_to_all, part_with_room, require_room
from engine.runtimes.failures import RuntimeFailure
from engine.runtimes.mcp.listing import ListedTool, Listing
from engine.runtimes.mcp.runtime import McpRuntime
from engine.validation.references import SchemaNotFollowedError, written_out
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.making import Candidate
from toolagent.contracts.manifest import NetworkAccess, PermissionClass, SecurityContext, SideEffectScope, ToolManifest
from toolagent.contracts.sources import McpSource
from toolagent_service.contracts.plans import McpBuild, Over
from toolagent_service.making.wildcards import chosen, meaningless

_MOST_STARTS = 4
_MOST_NOTES = 3
_MOST_TOOLS = 100
_NODE = Path(__file__).parents[1] / "node_projects" / "inside"
_NODE_HOME, _NODE_BRIDGE = "in_home.mjs", "mcp_bridge.mjs"
_TOLD = 400


class McpBuilder:
    """Makes data and files, and registers nothing."""

    def __init__(self, projects: PythonProjects, node: NodeProjects, runtime: McpRuntime, environment: Mapping[str, str]) -> None:
        self._projects, self._node, self._runtime, self._environment = projects, node, runtime, dict(environment)

    async def build(self, plan: McpBuild, job: Job) -> Built:
        """Raises BuildFailed, ScriptFailure (`UnavailableError`)."""
        return await (self._of_node(plan, job) if plan.language == "nodejs" else self._of_python(plan, job))

    async def _of_python(self, plan: McpBuild, job: Job) -> Built:
        place = job.place
        with failing("The project cannot be installed"):
            plan, repository, too_large = await asyncio.to_thread(_with_room, plan, job.repository)
            order = Order(repository, plan.project, place.work, job.about.tool_name, needs_package=bool(too_large))
            prepared = await self._projects.prepare(order, job.progress)
            await asyncio.to_thread(_pack, None if too_large else repository, prepared, plan.project, place.folder)
        scripts: Mapping[str, str] = prepared.installed.scripts if prepared.installed else {}
        modules = () if too_large else await asyncio.to_thread(_modules, repository, plan.module)
        names = (*plan.programs, *scripts)
        starts = [one for over in plan.over for one in starts_of(names, scripts, modules, plan.arguments, over)[:_MOST_STARTS]]
        source = McpSource(tool_name="-", host_dir=place.host_dir, environment=self._environment)

        def laid(start: Start) -> McpSource:
            (place.folder / "main.py").write_text(launcher_of_server(start, plan.project, plan.module))
            return source

        notes = (*prepared.notes, *([f"Only its package was taken. {too_large}"] if too_large else []))
        return await self._listed([(one.said, partial(laid, one)) for one in starts], job, notes)

    async def _of_node(self, plan: McpBuild, job: Job) -> Built:
        place = job.place
        prepared = await self._node.prepare(plan.project, job)
        named = [prepared.programs[name] for name in plan.programs if name in prepared.programs]
        files = [*dict.fromkeys((*named, *prepared.starts, *prepared.programs.values()))]
        # With the arguments of its README first, then without.
        ways = [(file, *given) for file in files for given in dict.fromkeys((plan.arguments, ()))][:_MOST_STARTS]
        beside = (_NODE_HOME, "working_folder.mjs", *((_NODE_BRIDGE, "listening.mjs") if "http" in plan.over else ()))
        await asyncio.to_thread(_put_beside, place.folder, beside)

        def start(over: Over, way: Sequence[str]) -> tuple[str, Callable[[], McpSource]]:
            bridge, said = ((_NODE_BRIDGE,), ("over HTTP",)) if over == "http" else ((), ())
            command = ("node", _NODE_HOME, *bridge, *way)
            source = partial(McpSource, tool_name="-", host_dir=place.host_dir, command=command, environment=self._environment)
            return " ".join(("node", *way, *said)), source

        noted = "".join(f" Noted: {note}" for note in prepared.notes[:_MOST_NOTES])[:_TOLD]
        return await self._listed([start(over, way) for over in plan.over for way in ways], job, prepared.notes, noted)

    async def _listed(
        self, starts: Sequence[tuple[str, Callable[[], McpSource]]], job: Job, notes: tuple[str, ...], noted: str = ""
    ) -> Built:
        """Builds the tools of the first start that lists some. `starts`: a name, and what lays out the start. Raises BuildFailed."""
        failures: list[str] = []
        manifest = ToolManifest(tool_id=job.about.tool_name, name=job.about.tool_name, security_context=_rights(job))
        for said, laid in starts:
            job.progress(f"starting the MCP server ({said})")
            try:
                source = await asyncio.to_thread(laid)
                listing = await self._runtime.listed(manifest, source, job.progress)
            except (RuntimeFailure, ValueError) as failure:
                failures.append(f"{said}: {_said(failure)}")
                continue
            if listing.tools:
                return _built(listing, job, notes, source.command)
            failures.append(f"{said}: it lists no tools")
        told = "; ".join(failures) or "nothing was found that could start it"
        raise BuildFailed(f"The MCP server does not start: {told[:1_500]}{noted}", "\n".join(failures) if told[1_500:] else "")


def _with_room(plan: McpBuild, repository: Path) -> tuple[McpBuild, Path, str]:
    """The plan and the folder to bring: the whole repository, else the folder of the server's project.

    If neither fits, also the reason: the package alone may be smaller.
    """
    try:
        require_room(repository)
    except ValueError as error:
        too_large = str(error)
    else:
        return plan, repository, ""
    try:
        brought = part_with_room(repository, plan.project, plan.module)
    except ValueError:
        return plan, repository, too_large
    module = PurePosixPath(plan.module).relative_to(plan.project).as_posix()
    return plan.model_copy(update={"project": "", "module": module}), brought, ""


def _pack(repository: Path | None, prepared: Prepared, project: str, into: Path) -> None:
    pack_project({"main.py": "", **{path.name: path.read_text() for path in (WORKING_FOLDER, BRIDGE)}}, prepared, into)
    if repository is None:
        (into / REPOSITORY / project).mkdir(parents=True)
    else:
        copy_into(repository, into / REPOSITORY, Room())
    open_to_all(into)


def _put_beside(folder: Path, names: Sequence[str]) -> None:
    for name in names:
        (folder / name).write_text((_NODE / name).read_text())
    open_to_all(folder)


def _modules(repository: Path, module: str) -> tuple[str, ...]:
    """The file that makes the server, after the `__main__.py` beside it."""
    program = PurePosixPath(module).with_name("__main__.py").as_posix() if module else ""
    return tuple(dict.fromkeys(one for one in (program, module) if one and (repository / one).is_file()))


def _said(failure: Exception) -> str:
    if not isinstance(failure, RuntimeFailure):
        return str(failure)
    last = last_line_of(str(failure.details.get("stderr") or ""))
    return f"{failure.message}{f' It said last: {last}' if last else ''}"[:_TOLD]


def _rights(job: Job) -> SecurityContext:
    return SecurityContext(network_access=NetworkAccess(allow_hosts=job.hosts))


def _built(listing: Listing, job: Job, notes: tuple[str, ...], command: tuple[str, ...]) -> Built:
    operations = job.about.operations
    left_out = [LeftOut(fault.name or "listing", fault.reason) for fault in listing.faults]
    if told := meaningless(listing.tools, operations, lambda tool: (tool.name,)):
        raise BuildFailed(f"No tool is meant: {told}")
    wanted, unwanted = chosen(listing.tools, operations, lambda tool: (tool.name,))
    left_out += [LeftOut(tool.name, NOT_NAMED) for tool in unwanted]
    left_out += [LeftOut(tool.name, f"There are more than {_MOST_TOOLS} tools; name it in `operations`.") for tool in wanted[_MOST_TOOLS:]]
    tools: list[tuple[ListedTool, JsonSchema, JsonSchema]] = []
    for tool in wanted[:_MOST_TOOLS]:
        try:
            tools.append((tool, written_out(tool.input_schema), written_out(tool.output_schema or {})))
        except SchemaNotFollowedError as error:
            left_out.append(LeftOut(tool.name, f"A schema of it cannot be used: {error}"))
    if not tools:
        raise BuildFailed(f"None of its tools can be used. {'; '.join(map(str, left_out[:5]))}")
    # Names and descriptions are the server's.
    with failing("What the MCP server says of its tools makes none"):
        candidate = _candidate(tools, job, McpSource(tool_name="-", host_dir=job.place.host_dir, command=command))
    return job.built(candidate, left_out, notes)


def _candidate(tools: Sequence[tuple[ListedTool, JsonSchema, JsonSchema]], job: Job, server: McpSource) -> Candidate:
    about = job.about
    groups = about.groups(len(tools))
    entries: list[ToolEntry] = []
    for (tool, asked, answered), tool_id in zip(tools, about.ids(words_of([tool.name for tool, _, _ in tools])), strict=True):
        source = server.model_copy(update={"tool_name": tool.name, "process": groups[0] if groups else None})
        said = tool.description.strip() or about.description or f"The tool {tool.name} of an MCP server."
        manifest = ToolManifest(
            tool_id=tool_id,
            name=tool.name[:LONGEST_NAME],
            description=said[:LONGEST_DESCRIPTION],
            backend_runtime=source.traits.runtime,
            group_ids=groups,
            input_schema=asked,
            output_schema=answered,
            # The server's own hints are not trusted.
            permission_class=PermissionClass.EXTERNAL,
            side_effect_scope=SideEffectScope.NETWORK if job.hosts else SideEffectScope.LOCAL_STATE,
            security_context=_rights(job),
            timeout_s=60.0,
        )
        entries.append(ToolEntry(manifest=manifest, sources=(source,)))
    return about.candidate(entries, f"The tools of the MCP server {about.tool_name}.")


def words_of(names: Sequence[str]) -> list[str]:
    """Words for tool ids. Names that give the same word are numbered."""
    words: list[str] = []
    for name in names:
        words.append(unused(plain_word(name[:LONGEST_NAME]) or "tool", words))
    return words
