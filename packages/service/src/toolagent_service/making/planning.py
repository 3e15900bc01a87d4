"""The ways to make a tool of a repository, by what was recognised in it, in the order in which they are tried."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

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

LOCAL: tuple[MakeRuntime | None, ...] = (None, "local", "uv")
DOCKER: tuple[MakeRuntime | None, ...] = (None, "docker")
_ANY: tuple[MakeRuntime | None, ...] = (*LOCAL, "docker")
_MOST = 3
"""How many findings of one kind are tried. Findings are sorted, the best first."""

_Interface: TypeAlias = Literal["asgi", "wsgi", "gradio"]
_INTERFACES: Sequence[tuple[FindingKind, _Interface]] = (
    (FindingKind.ASGI, "asgi"),
    (FindingKind.WSGI, "wsgi"),
    (FindingKind.GRADIO, "gradio"),
)
_Way: TypeAlias = Callable[[Inspection], Iterator["BuildPlan | Tried"]]
"""Plans, the best first, and findings that cannot be built, with the reason."""


@dataclass(frozen=True, slots=True)
class Ways:
    """`plans` need no model and are tried in this order. `others` are ways that are not possible here. `last` comes after all plans.

    If nothing in a repository can be run, the agent is not asked either.
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
    """A server URL in the task takes precedence over those in documents."""
    if server_url is None:
        return inspection
    findings = tuple(_served_at(one, server_url) if one.kind is FindingKind.OPENAPI else one for one in inspection.findings)
    return inspection.model_copy(update={"findings": findings})


def _served_at(finding: Finding, server_url: str) -> Finding:
    if not finding.details.get("operations"):
        return finding
    # The only possible fault of a document with operations is its server.
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
                others.append(_impossible(one.way, one.found, f"The task asks for the runtime {spec.runtime!r}."))
    seen = {one.way for one in (*plans, *others)}
    others += [Tried(way=name, outcome="not_found") for name in _NAMES if name not in seen]
    last = CodingBuild() if is_runnable(inspection) else NothingToBuild(reason=_nothing(inspection, others))
    # First what is at the top of the repository, then its other projects, and last what is not run here.
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
    found = findings_of(inspection, FindingKind.TOOL_FILE)
    yield from _of_tool_files([one for one in found if not {"faults", "aside"} & one.details.keys()])
    yield from (_not("tool_file", one) for one in found[:_MOST] if "faults" in one.details)


def _examples(inspection: Inspection) -> Iterator[BuildPlan | Tried]:
    """Tools in folders for examples and tests count only if there is nothing else."""
    yield from _of_tool_files([one for one in findings_of(inspection, FindingKind.TOOL_FILE) if "aside" in one.details])


def _of_tool_files(found: Sequence[Finding]) -> Iterator[BuildPlan]:
    if paths := tuple(one.path for one in found):
        yield ToolFileBuild(paths=paths, found=f"tool files {', '.join(paths[:_MOST])}")


_SPOKEN_TO: Mapping[str, tuple[Over, ...]] = {"alone": ("http", "stdio"), "too": ("stdio", "http")}


def _mcp(inspection: Inspection) -> Iterator[BuildPlan | Tried]:
    for one in findings_of(inspection, FindingKind.MCP_SERVER)[:_MOST]:
        if "project" not in one.details:
            yield _not("mcp", one)
            continue
        yield McpBuild(
            project=_text(one, "project"),
            language=_language(one),
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
    found = findings_of(inspection, kind)
    for one in [one for one in found if "project" in one.details][:_MOST]:
        yield AsgiBuild(
            interface=interface,
            module=_text(one, "module"),
            attribute=_text(one, "attribute"),
            is_factory=one.details.get("is_factory") is True,
            root=_text(one, "root"),
            project=_text(one, "project"),
            document=document_of(inspection),
            found=f"{_text(one, 'framework') or interface} app {_text(one, 'module')}:{_text(one, 'attribute')}, {one.path}",
        )
    if found and not any("project" in one.details for one in found):
        yield _impossible("asgi", _found(f"{interface} app", found[0]), "No file says what it depends on.")


def _node_apps(inspection: Inspection) -> Iterator[BuildPlan | Tried]:
    for one in findings_of(inspection, FindingKind.NODE_APP)[:_MOST]:
        yield NodeAppBuild(
            project=_text(one, "project"),
            starts=_texts(one, "starts"),
            document=document_of(inspection),
            found=_found(f"{_text(one, 'framework')} app", one),
        )


def _docker(inspection: Inspection) -> Iterator[BuildPlan | Tried]:
    for one in findings_of(inspection, FindingKind.DOCKERFILE)[:_MOST]:
        port = port_of(one)
        yield (
            _not("docker", one)
            if port is None
            else DockerBuild(dockerfile=one.path, port=port, document=document_of(inspection), found=_found("Dockerfile", one))
        )


def _programs(inspection: Inspection) -> Iterator[BuildPlan | Tried]:
    for one in findings_of(inspection, FindingKind.CONSOLE_SCRIPT)[:_MOST]:
        scripts = one.details.get("scripts")
        programs = tuple(scripts) if isinstance(scripts, dict) else ()
        folder = one.path.rpartition("/")[0]
        starting = _starting_servers(inspection, folder)
        if programs and starting >= set(programs):
            yield _impossible("program", one.path, "Its programs start the MCP server.")
            continue
        are_files = one.details.get("are_files") is True
        found = _found("scripts" if are_files else "console scripts", one, programs)
        yield ProgramBuild(project=folder, language=_language(one), programs=programs, are_files=are_files, found=found)


def _starting_servers(inspection: Inspection, folder: str) -> set[str]:
    """Programs of a project that start its MCP server, by their names. They do not end, so they are no tools."""
    servers = [one for one in findings_of(inspection, FindingKind.MCP_SERVER) if one.details.get("project") == folder]
    return {name for one in servers for name in _texts(one, "programs") if "mcp" in name.lower()}


def _remote(inspection: Inspection) -> Iterator[BuildPlan | Tried]:
    """Comes after everything that runs here, because the server may be another copy."""
    found = findings_of(inspection, FindingKind.OPENAPI)
    served = [one for one in found if _text(one, "server_url") and one.details.get("operations")]
    for one in served[:_MOST]:
        yield OpenApiRemote(path=one.path, server_url=_text(one, "server_url"), found=_found("OpenAPI document", one))
    yield from (_not("openapi_remote", one) for one in [one for one in found if one not in served][:_MOST])


_WAYS: Sequence[tuple[tuple[MakeRuntime | None, ...], _Way]] = (
    (LOCAL, _tool_files),
    (LOCAL, _mcp),
    (LOCAL, _apps),
    (LOCAL, _node_apps),
    (DOCKER, _docker),
    (LOCAL, _programs),
    (_ANY, _remote),
    (LOCAL, _examples),
)
"""The order in which they are tried, as in docs/making.md."""

_NOT_RUN = ("tool_file", "openapi_remote")
_NAMES = ("tool_file", "mcp", "asgi", "node_app", "docker", "program", "openapi_remote")

_RUNNABLE = (FindingKind.DOCKERFILE, FindingKind.CONSOLE_SCRIPT, FindingKind.MCP_SERVER)


def findings_of(inspection: Inspection, kind: FindingKind) -> list[Finding]:
    return [one for one in inspection.findings if one.kind is kind]


def port_of(dockerfile: Finding) -> int | None:
    match dockerfile.details.get("ports"):
        case [int(port), *_]:
            return port
        case _:
            return None


def is_runnable(inspection: Inspection) -> bool:
    return inspection.code_files > 0 or any(one.kind in _RUNNABLE and "refused" not in one.details for one in inspection.findings)


def document_of(inspection: Inspection) -> str | None:
    return next((one.path for one in findings_of(inspection, FindingKind.OPENAPI) if "refused" not in one.details), None)


def _not(way: str, finding: Finding) -> Tried:
    return _impossible(way, finding.path, str(finding.details.get("fault") or finding.summary))


def _impossible(way: str, found: str, reason: str) -> Tried:
    return Tried(way=way, found=found, outcome="not_possible", reason=reason)


def _found(what: str, finding: Finding, names: Sequence[str] = ()) -> str:
    return f"{what}{' ' if names else ''}{', '.join(names[:_MOST])}{', …' if len(names) > _MOST else ''}, {finding.path}"


def _language(finding: Finding) -> Literal["python", "nodejs"]:
    return "nodejs" if finding.details.get("language") == "nodejs" else "python"


def _text(finding: Finding, name: str) -> str:
    value = finding.details.get(name)
    return value if isinstance(value, str) else ""


def _texts(finding: Finding, name: str) -> tuple[str, ...]:
    value = finding.details.get(name)
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()


_LOOKED = (
    "a *.tool.json, an MCP server, a Python project with an app, an app of Node.js, a Dockerfile with EXPOSE, console scripts, "
    "an OpenAPI document"
)


def only_code(inspection: Inspection) -> str:
    """Why a repository without any recognised way cannot become a tool without a model."""
    return (
        f"Nothing in the repository's {inspection.files} files can be run or called as it is; looked for: {_LOOKED}. "
        "A script that uses its code becomes a tool with a *.tool.json beside it (`toolagent new-tool` writes one)."
    )


def _nothing(inspection: Inspection, others: Sequence[Tried]) -> str:
    said = " ".join(f"{one.found}: {one.reason.removesuffix('.')}." for one in others if one.outcome == "not_possible")
    nothing = f"{said} Nothing else" if said else "Nothing"
    return f"{nothing} in the repository's {inspection.files} files can be run or called; looked for: {_LOOKED}, source code."
