"""The versions of a tool, shown and changed."""

from api.errors import Refusal
from api.ports import Dependencies
from api.problems import ProblemKind
from api.views.found_tools import found_tool
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.versions import ToolVersions

_MAX_VERSION = 64


async def versions_of(dependencies: Dependencies, tool_id: str) -> ToolVersions:
    """The versions of a tool with their evidence. Raises Refusal for an unknown tool."""
    found = await found_tool(dependencies, tool_id, dependencies.registry.versions)
    evidence = await dependencies.evidence.of_tool(tool_id)
    versions = tuple(one.model_copy(update={"evidence": evidence.get(one.version)}) for one in found.versions)
    return found.model_copy(update={"versions": versions})


async def rolled_back(dependencies: Dependencies, tool_id: str, from_version: str | None = None) -> ToolVersions:
    """Raises Refusal for an unknown tool or version, and for a tool without an earlier version."""
    if from_version is not None:
        await require_version(dependencies, tool_id, from_version)
    found = await versions_of(dependencies, tool_id)
    if await dependencies.registry.roll_back(tool_id, from_version) is None:
        message = f"No version of {tool_id!r} that can be called was active before {found.active_version}."
        remedy = f"Activate another one with POST /tools/{tool_id}/versions/VERSION/activate, or have the tool repaired."
        versions = [one.version for one in found.versions]
        raise Refusal(ProblemKind.NO_EARLIER_VERSION, f"{message} {remedy}", details={"versions": [*versions]})
    return await versions_of(dependencies, tool_id)


async def require_version(dependencies: Dependencies, tool_id: str, version: str) -> None:
    """Raises Refusal for an unknown tool or version."""
    known = [one.version for one in (await versions_of(dependencies, tool_id)).versions]
    if version not in known:
        message = f"Tool {tool_id!r} has no version {version[:_MAX_VERSION]!r}; it has {', '.join(known[:20])}."
        raise Refusal(ErrorType.TOOL_NOT_FOUND, message, details={"versions": [*known]})
