"""Which way a tool is built of what a repository was recognised as."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from toolagent.contracts.making import Finding, FindingKind, Inspection
from toolagent.contracts.plans import AsgiBuild, BuildPlan, CodingBuild, DockerBuild, NothingToBuild, OpenApiRemote, ToolFileBuild
from toolagent.contracts.task_specs import BuildTool, GithubDeploy, MakeRuntime, RepairTool, TaskSpec

__all__ = ["plan"]

_LOCAL: tuple[MakeRuntime | None, ...] = (None, "local", "uv")
_DOCKER: tuple[MakeRuntime | None, ...] = (None, "docker")

_Way: TypeAlias = Callable[[Inspection], tuple[BuildPlan | None, str]]
"""The plan, or why there is none; empty where nothing spoke for it either."""


def plan(spec: TaskSpec, inspection: Inspection | None = None) -> BuildPlan:
    """The first way that works without a model, of those that `spec.runtime` leaves; else the coding agent.

    A repository with nothing in it that could be run is nothing for the agent either.
    """
    match spec:
        case BuildTool() | RepairTool():
            return CodingBuild()
        case GithubDeploy():
            return _of_repository(spec, inspection or Inspection())


def _of_repository(spec: GithubDeploy, inspection: Inspection) -> BuildPlan:
    notes: list[str] = []
    for runtimes, way in _WAYS:
        found, why = way(inspection)
        if found is not None and spec.runtime in runtimes:
            return found.model_copy(update={"notes": tuple(notes)})
        if found is not None:
            notes.append(f"{found.way} was possible, but the task asks for the runtime {spec.runtime!r}.")
        elif why:
            notes.append(why)
    if not inspection.code_files and not _runnable(inspection):
        return NothingToBuild(reason=_nothing(inspection, notes), notes=tuple(notes))
    return CodingBuild(notes=tuple(notes))


def _tool_files(inspection: Inspection) -> tuple[BuildPlan | None, str]:
    found = _of(inspection, FindingKind.TOOL_FILE)
    usable = [one for one in found if "faults" not in one.details]
    own = [one for one in usable if "aside" not in one.details]
    if own:
        return ToolFileBuild(paths=tuple(one.path for one in own)), ""
    return None, "; ".join(f"{one.path}: {one.summary}" for one in found[:3] if one not in usable)


def _examples(inspection: Inspection) -> tuple[BuildPlan | None, str]:
    """Tools in folders for examples and tests are meant when nothing else is there."""
    found = [one for one in _of(inspection, FindingKind.TOOL_FILE) if "aside" in one.details]
    return (ToolFileBuild(paths=tuple(one.path for one in found)) if found else None), ""


def _asgi(inspection: Inspection) -> tuple[BuildPlan | None, str]:
    found = _of(inspection, FindingKind.ASGI)
    declared = [one for one in found if "project" in one.details]
    if not declared:
        return None, f"{found[0].path} has an application, but no file says what it depends on." if found else ""
    details = declared[0].details
    return AsgiBuild(
        module=str(details["module"]),
        attribute=str(details["attribute"]),
        is_factory=details.get("is_factory") is True,
        root=str(details.get("root", "")),
        project=str(details["project"]),
        document=_document(inspection),
    ), ""


def _docker(inspection: Inspection) -> tuple[BuildPlan | None, str]:
    found = _of(inspection, FindingKind.DOCKERFILE)
    for one in found:
        match one.details.get("ports"):
            case [int(port), *_]:
                return DockerBuild(dockerfile=one.path, port=port, document=_document(inspection)), ""
            case _:
                continue
    return None, f"{found[0].path}: {found[0].summary}" if found else ""


def _remote(inspection: Inspection) -> tuple[BuildPlan | None, str]:
    """A document is alone when nothing here serves it: else its address is that of somebody else's copy."""
    documents = _of(inspection, FindingKind.OPENAPI)
    usable = [one for one in documents if "refused" not in one.details]
    if not usable:
        return None, f"{documents[0].path}: {documents[0].summary}" if documents else ""
    if inspection.code_files:
        return None, ""
    for one in usable:
        if isinstance(url := one.details.get("server_url"), str) and one.details.get("operations"):
            return OpenApiRemote(path=one.path, server_url=url), ""
    return None, f"{usable[0].path}: {usable[0].details.get('fault') or usable[0].summary}"


_WAYS: Sequence[tuple[tuple[MakeRuntime | None, ...], _Way]] = (
    (_LOCAL, _tool_files),
    (_LOCAL, _asgi),
    (_DOCKER, _docker),
    ((*_LOCAL, "docker"), _remote),
    (_LOCAL, _examples),
)


def _of(inspection: Inspection, kind: FindingKind) -> list[Finding]:
    return [one for one in inspection.findings if one.kind is kind]


def _document(inspection: Inspection) -> str | None:
    usable = (one.path for one in _of(inspection, FindingKind.OPENAPI) if "refused" not in one.details)
    return next(usable, None)


def _runnable(inspection: Inspection) -> bool:
    kinds = (FindingKind.DOCKERFILE, FindingKind.CONSOLE_SCRIPT, FindingKind.MCP_SERVER)
    return any(one.kind in kinds and "refused" not in one.details for one in inspection.findings)


def _nothing(inspection: Inspection, notes: Sequence[str]) -> str:
    looked = "source code, a *.tool.json, a Python project with an ASGI app, a Dockerfile with EXPOSE, an OpenAPI document"
    if not notes:
        return f"Nothing in the repository's {inspection.files} files can be run or called; looked for: {looked}."
    said = " ".join(f"{note.removesuffix('.')}." for note in notes)
    return f"{said} Nothing else in the repository's {inspection.files} files can be run or called; looked for: {looked}."
