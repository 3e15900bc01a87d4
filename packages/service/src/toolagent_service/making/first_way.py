"""The one way of tasks that began before several ways were tried.

Only for their histories.
It must choose as it did then, so do not change it. Remove it when no such task is open or kept.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from toolagent.contracts.making import FindingKind, Inspection
from toolagent.contracts.task_specs import GithubDeploy, MakeRuntime, TaskSpec
from toolagent_service.contracts.plans import AsgiBuild, BuildPlan, CodingBuild, DockerBuild, NothingToBuild, OpenApiRemote, ToolFileBuild
from toolagent_service.making.planning import DOCKER, LOCAL, Ways, document_of, findings_of, is_runnable, port_of

_Way: TypeAlias = Callable[[Inspection], BuildPlan | None]


def first_way(spec: TaskSpec, found: Ways, inspection: Inspection) -> Ways:
    """`found` are the ways of today. Of these, only the texts of `others` and `last` are used."""
    if not isinstance(spec, GithubDeploy):
        return found
    for runtimes, way in _WAYS:
        if (plan := way(inspection)) is not None and spec.runtime in runtimes:
            return Ways((plan,), found.others, CodingBuild(), goes_on=False)
    if is_runnable(inspection):
        last: CodingBuild | NothingToBuild = CodingBuild()
    elif isinstance(found.last, NothingToBuild):
        last = found.last
    else:
        last = NothingToBuild(reason="Nothing in the repository can be run or called.")
    return Ways((), found.others, last, goes_on=False)


def _tool_files(inspection: Inspection) -> BuildPlan | None:
    own = [one.path for one in findings_of(inspection, FindingKind.TOOL_FILE) if not {"faults", "aside"} & one.details.keys()]
    return ToolFileBuild(paths=tuple(own)) if own else None


def _examples(inspection: Inspection) -> BuildPlan | None:
    found = [one.path for one in findings_of(inspection, FindingKind.TOOL_FILE) if "aside" in one.details]
    return ToolFileBuild(paths=tuple(found)) if found else None


def _asgi(inspection: Inspection) -> BuildPlan | None:
    declared = [one.details for one in findings_of(inspection, FindingKind.ASGI) if "project" in one.details]
    if not declared:
        return None
    details = declared[0]
    return AsgiBuild(
        module=str(details["module"]),
        attribute=str(details["attribute"]),
        is_factory=details.get("is_factory") is True,
        root=str(details.get("root", "")),
        project=str(details["project"]),
        document=document_of(inspection),
    )


def _docker(inspection: Inspection) -> BuildPlan | None:
    for one in findings_of(inspection, FindingKind.DOCKERFILE):
        if (port := port_of(one)) is not None:
            return DockerBuild(dockerfile=one.path, port=port, document=document_of(inspection))
    return None


def _remote(inspection: Inspection) -> BuildPlan | None:
    if inspection.code_files:
        return None
    for one in findings_of(inspection, FindingKind.OPENAPI):
        url = one.details.get("server_url")
        if "refused" not in one.details and isinstance(url, str) and one.details.get("operations"):
            return OpenApiRemote(path=one.path, server_url=url)
    return None


_WAYS: Sequence[tuple[tuple[MakeRuntime | None, ...], _Way]] = (
    (LOCAL, _tool_files),
    (LOCAL, _asgi),
    (DOCKER, _docker),
    ((*LOCAL, "docker"), _remote),
    (LOCAL, _examples),
)
