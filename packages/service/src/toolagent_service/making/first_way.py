"""The one way that a task took before every way was tried: for the histories of tasks that began then, and for nothing else.

It must choose what was chosen then, so it is changed no more. It goes when no such task is open or kept.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from toolagent.contracts.making import Finding, FindingKind, Inspection
from toolagent.contracts.task_specs import GithubDeploy, MakeRuntime, TaskSpec
from toolagent_service.contracts.plans import AsgiBuild, BuildPlan, CodingBuild, DockerBuild, NothingToBuild, OpenApiRemote, ToolFileBuild
from toolagent_service.making.planning import Ways

_LOCAL: tuple[MakeRuntime | None, ...] = (None, "local", "uv")
_DOCKER: tuple[MakeRuntime | None, ...] = (None, "docker")
_RUNNABLE = (FindingKind.DOCKERFILE, FindingKind.CONSOLE_SCRIPT, FindingKind.MCP_SERVER)

_Way: TypeAlias = Callable[[Inspection], BuildPlan | None]


def first_way(spec: TaskSpec, found: Ways, inspection: Inspection) -> Ways:
    """`found` are the ways of today: what they say of ways that are none, and what is left, is only told."""
    if not isinstance(spec, GithubDeploy):
        return found
    for runtimes, way in _WAYS:
        if (plan := way(inspection)) is not None and spec.runtime in runtimes:
            return Ways((plan,), found.others, CodingBuild(), goes_on=False)
    if not inspection.code_files and not any(one.kind in _RUNNABLE and "refused" not in one.details for one in inspection.findings):
        last = (
            found.last
            if isinstance(found.last, NothingToBuild)
            else NothingToBuild(reason="Nothing in the repository can be run or called.")
        )
        return Ways((), found.others, last, goes_on=False)
    return Ways((), found.others, CodingBuild(), goes_on=False)


def _tool_files(inspection: Inspection) -> BuildPlan | None:
    own = [one.path for one in _of(inspection, FindingKind.TOOL_FILE) if not {"faults", "aside"} & one.details.keys()]
    return ToolFileBuild(paths=tuple(own)) if own else None


def _examples(inspection: Inspection) -> BuildPlan | None:
    found = [one.path for one in _of(inspection, FindingKind.TOOL_FILE) if "aside" in one.details]
    return ToolFileBuild(paths=tuple(found)) if found else None


def _asgi(inspection: Inspection) -> BuildPlan | None:
    declared = [one.details for one in _of(inspection, FindingKind.ASGI) if "project" in one.details]
    if not declared:
        return None
    details = declared[0]
    return AsgiBuild(
        module=str(details["module"]),
        attribute=str(details["attribute"]),
        is_factory=details.get("is_factory") is True,
        root=str(details.get("root", "")),
        project=str(details["project"]),
        document=_document(inspection),
    )


def _docker(inspection: Inspection) -> BuildPlan | None:
    for one in _of(inspection, FindingKind.DOCKERFILE):
        match one.details.get("ports"):
            case [int(port), *_]:
                return DockerBuild(dockerfile=one.path, port=port, document=_document(inspection))
            case _:
                continue
    return None


def _remote(inspection: Inspection) -> BuildPlan | None:
    if inspection.code_files:
        return None
    for one in _of(inspection, FindingKind.OPENAPI):
        url = one.details.get("server_url")
        if "refused" not in one.details and isinstance(url, str) and one.details.get("operations"):
            return OpenApiRemote(path=one.path, server_url=url)
    return None


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
    return next((one.path for one in _of(inspection, FindingKind.OPENAPI) if "refused" not in one.details), None)
