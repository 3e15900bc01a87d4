"""Which ways lead to a tool, of what a repository was recognised as, in the order in which they are tried."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pydantic import JsonValue

from toolagent.contracts.making import Finding, FindingKind, Inspection, Tried
from toolagent.contracts.task_specs import BuildTool, GithubDeploy, MakeRuntime, RepairTool, TaskSpec
from toolagent_service.contracts.plans import (
    AsgiBuild,
    BuildPlan,
    CodingBuild,
    DockerBuild,
    McpBuild,
    NodeAppBuild,
    NothingToBuild,
    OpenApiRemote,
    Over,
    ProgramBuild,
    ToolFileBuild,
)

_LOCAL: tuple[MakeRuntime | None, ...] = (None, "local", "uv")
_DOCKER: tuple[MakeRuntime | None, ...] = (None, "docker")
_ANY: tuple[MakeRuntime | None, ...] = (*_LOCAL, "docker")
_MOST = 3
"""Findings of one kind that are tried: what is found there is sorted, the best first."""

_Interface: TypeAlias = Literal["asgi", "wsgi", "gradio"]
_INTERFACES: Sequence[tuple[FindingKind, _Interface]] = (
    (FindingKind.ASGI, "asgi"),
    (FindingKind.WSGI, "wsgi"),
    (FindingKind.GRADIO, "gradio"),
)
_Way: TypeAlias = Callable[[Inspection], Iterator["BuildPlan | Tried"]]
"""Plans, the best first; and of what was found, but cannot be built, why."""


@dataclass(frozen=True, slots=True)
class Ways:
    """`plans` need no model and are tried in this order; `others` are the ways that are none here; `last` is what remains after them.

    A repository with nothing in it that could be run is nothing for the agent either.
    """

    plans: tuple[BuildPlan, ...]
    others: tuple[Tried, ...]
    last: CodingBuild | NothingToBuild
    goes_on: bool = True
    """Whether the next way is tried when what was built does not pass the gate."""


def ways(spec: TaskSpec, inspection: Inspection | None = None) -> Ways:
    match spec:
        case BuildTool() | RepairTool():
            return Ways((), (), CodingBuild())
        case GithubDeploy():
            return _of_repository(spec, _served(inspection or Inspection(), spec.server_url))


def _served(inspection: Inspection, server_url: str | None) -> Inspection:
    """Where the task says where documents are served, it counts, and not what they say."""
    if server_url is None:
        return inspection
    findings = tuple(_served_at(one, server_url) if one.kind is FindingKind.OPENAPI else one for one in inspection.findings)
    return inspection.model_copy(update={"findings": findings})


def _served_at(finding: Finding, server_url: str) -> Finding:
    if not finding.details.get("operations"):
        return finding
    # What is wrong with one that has operations is its server.
    kept = {name: value for name, value in finding.details.items() if name != "fault"}
    return finding.model_copy(update={"details": {**kept, "server_url": server_url}})


def _of_repository(spec: GithubDeploy, inspection: Inspection) -> Ways:
    plans: list[BuildPlan] = []
    others: list[Tried] = []
    for runtimes, way in _WAYS:
        for one in way(inspection):
            if isinstance(one, Tried):
                others.append(one)
            elif spec.runtime in runtimes:
                plans.append(one)
            else:
                reason = f"The task asks for the runtime {spec.runtime!r}."
                others.append(Tried(way=one.way, found=one.found, outcome="not_possible", reason=reason))
    seen = {one.way for one in (*plans, *others)}
    others += [Tried(way=name, outcome="not_found") for name in _NAMES if name not in seen]
    runnable = inspection.code_files or any(one.kind in _RUNNABLE and "refused" not in one.details for one in inspection.findings)
    last = CodingBuild() if runnable else NothingToBuild(reason=_nothing(inspection, others))
    # What is at the top of the repository is what it is for; other projects of it come after, and what is not run here last.
    run = [plan for plan in plans if plan.way not in _NOT_RUN]
    rest = [plan for plan in plans if plan not in run]
    first = [plan for plan in rest if plan.way == "tool_file" and plan is plans[0]]
    return Ways((*first, *sorted(run, key=_is_elsewhere), *(plan for plan in rest if plan not in first)), tuple(others), last)


def _is_elsewhere(plan: BuildPlan) -> bool:
    match plan:
        case McpBuild(project=project) | AsgiBuild(project=project) | NodeAppBuild(project=project) | ProgramBuild(project=project):
            return bool(project)
        case DockerBuild(dockerfile=dockerfile):
            return "/" in dockerfile
        case ToolFileBuild() | OpenApiRemote() | CodingBuild() | NothingToBuild():
            return False


def _tool_files(inspection: Inspection) -> Iterator[BuildPlan | Tried]:
    found = _of(inspection, FindingKind.TOOL_FILE)
    own = [one for one in found if not {"faults", "aside"} & one.details.keys()]
    if own:
        yield ToolFileBuild(paths=_paths(own), found=f"tool files {', '.join(_paths(own)[:_MOST])}")
    yield from (_not("tool_file", one) for one in found[:_MOST] if "faults" in one.details)


def _examples(inspection: Inspection) -> Iterator[BuildPlan | Tried]:
    """Tools in folders for examples and tests are meant when nothing else is there."""
    found = [one for one in _of(inspection, FindingKind.TOOL_FILE) if "aside" in one.details]
    if found:
        yield ToolFileBuild(paths=_paths(found), found=f"tool files {', '.join(_paths(found)[:_MOST])}")


_SPOKEN_TO: Mapping[str, tuple[Over, ...]] = {"alone": ("http", "stdio"), "too": ("stdio", "http")}


def _mcp(inspection: Inspection) -> Iterator[BuildPlan | Tried]:
    for one in _of(inspection, FindingKind.MCP_SERVER)[:_MOST]:
        if "project" not in one.details:
            yield _not("mcp", one)
            continue
        yield McpBuild(
            project=_text(one, "project"),
            language="nodejs" if one.details.get("language") == "nodejs" else "python",
            programs=_texts(one, "programs"),
            module=_text(one, "module"),
            arguments=_texts(one, "arguments"),
            over=_SPOKEN_TO.get(_text(one, "http"), ("stdio",)),
            found=_found("MCP server", one),
        )


def _apps(inspection: Inspection) -> Iterator[BuildPlan | Tried]:
    for kind, interface in _INTERFACES:
        yield from _apps_of(inspection, kind, interface)


def _apps_of(inspection: Inspection, kind: FindingKind, interface: _Interface) -> Iterator[BuildPlan | Tried]:
    found = _of(inspection, kind)
    for one in [one for one in found if "project" in one.details][:_MOST]:
        yield AsgiBuild(
            interface=interface,
            module=_text(one, "module"),
            attribute=_text(one, "attribute"),
            is_factory=one.details.get("is_factory") is True,
            root=_text(one, "root"),
            project=_text(one, "project"),
            document=_document(inspection),
            found=f"{_text(one, 'framework') or interface} app {_text(one, 'module')}:{_text(one, 'attribute')}, {one.path}",
        )
    if found and not any("project" in one.details for one in found):
        reason = "No file says what it depends on."
        yield Tried(way="asgi", found=_found(f"{interface} app", found[0]), outcome="not_possible", reason=reason)


def _node_apps(inspection: Inspection) -> Iterator[BuildPlan | Tried]:
    for one in _of(inspection, FindingKind.NODE_APP)[:_MOST]:
        yield NodeAppBuild(
            project=_text(one, "project"),
            starts=_texts(one, "starts"),
            document=_document(inspection),
            found=_found(f"{_text(one, 'framework')} app", one),
        )


def _docker(inspection: Inspection) -> Iterator[BuildPlan | Tried]:
    for one in _of(inspection, FindingKind.DOCKERFILE)[:_MOST]:
        match one.details.get("ports"):
            case [int(port), *_]:
                yield DockerBuild(dockerfile=one.path, port=port, document=_document(inspection), found=_found("Dockerfile", one))
            case _:
                yield _not("docker", one)


def _programs(inspection: Inspection) -> Iterator[BuildPlan | Tried]:
    for one in _of(inspection, FindingKind.CONSOLE_SCRIPT)[:_MOST]:
        match one.details.get("scripts"):
            case dict() as scripts:
                programs = tuple(scripts)
            case _:
                programs = ()
        language = "nodejs" if one.details.get("language") == "nodejs" else "python"
        folder = one.path.rpartition("/")[0]
        starting = _starting_servers(inspection, folder)
        if programs and starting >= set(programs):
            yield Tried(way="program", found=one.path, outcome="not_possible", reason="Its programs start the MCP server.")
            continue
        are_files = one.details.get("are_files") is True
        found = _found("scripts" if are_files else "console scripts", one, programs)
        yield ProgramBuild(project=folder, language=language, programs=programs, are_files=are_files, found=found)


def _starting_servers(inspection: Inspection, folder: str) -> set[str]:
    """Programs of a project that say in their name that they start its MCP server: nobody calls them and waits for their end."""
    servers = [one for one in _of(inspection, FindingKind.MCP_SERVER) if one.details.get("project") == folder]
    return {name for one in servers for name in _texts(one, "programs") if "mcp" in name.lower()}


def _remote(inspection: Inspection) -> Iterator[BuildPlan | Tried]:
    """After everything that runs here: its server may be somebody else's copy."""
    found = _of(inspection, FindingKind.OPENAPI)
    served = [one for one in found if _text(one, "server_url") and one.details.get("operations")]
    for one in served[:_MOST]:
        yield OpenApiRemote(path=one.path, server_url=_text(one, "server_url"), found=_found("OpenAPI document", one))
    yield from (_not("openapi_remote", one) for one in [one for one in found if one not in served][:_MOST])


_WAYS: Sequence[tuple[tuple[MakeRuntime | None, ...], _Way]] = (
    (_LOCAL, _tool_files),
    (_LOCAL, _mcp),
    (_LOCAL, _apps),
    (_LOCAL, _node_apps),
    (_DOCKER, _docker),
    (_LOCAL, _programs),
    (_ANY, _remote),
    (_LOCAL, _examples),
)
"""The order in which they are tried; docs/making.md tells it."""

_NOT_RUN = ("tool_file", "openapi_remote")
_NAMES = ("tool_file", "mcp", "asgi", "node_app", "docker", "program", "openapi_remote")

_RUNNABLE = (FindingKind.DOCKERFILE, FindingKind.CONSOLE_SCRIPT, FindingKind.MCP_SERVER)


def _of(inspection: Inspection, kind: FindingKind) -> list[Finding]:
    return [one for one in inspection.findings if one.kind is kind]


def _document(inspection: Inspection) -> str | None:
    return next((one.path for one in _of(inspection, FindingKind.OPENAPI) if "refused" not in one.details), None)


def _not(way: str, finding: Finding) -> Tried:
    reason = finding.details.get("fault") or finding.summary
    return Tried(way=way, found=finding.path, outcome="not_possible", reason=str(reason))


def _found(what: str, finding: Finding, names: Sequence[str] = ()) -> str:
    return f"{what}{' ' if names else ''}{', '.join(names[:_MOST])}{', …' if len(names) > _MOST else ''}, {finding.path}"


def _paths(findings: Sequence[Finding]) -> tuple[str, ...]:
    return tuple(one.path for one in findings)


def _text(finding: Finding, name: str) -> str:
    value: JsonValue = finding.details.get(name)
    return value if isinstance(value, str) else ""


def _texts(finding: Finding, name: str) -> tuple[str, ...]:
    value: JsonValue = finding.details.get(name)
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()


_LOOKED = (
    "a *.tool.json, an MCP server, a Python project with an app, an app of Node.js, a Dockerfile with EXPOSE, console scripts, "
    "an OpenAPI document"
)


def only_code(inspection: Inspection) -> str:
    """Why a repository becomes no tool by itself in which none of the ways was found."""
    return (
        f"Nothing in the repository's {inspection.files} files can be run or called as it is; looked for: {_LOOKED}. "
        "A script that uses its code becomes a tool with a *.tool.json beside it (`toolagent new-tool` writes one)."
    )


def _nothing(inspection: Inspection, others: Sequence[Tried]) -> str:
    looked = f"{_LOOKED}, source code"
    said = " ".join(f"{one.found}: {one.reason.removesuffix('.')}." for one in others if one.outcome == "not_possible")
    if not said:
        return f"Nothing in the repository's {inspection.files} files can be run or called; looked for: {looked}."
    return f"{said} Nothing else in the repository's {inspection.files} files can be run or called; looked for: {looked}."
