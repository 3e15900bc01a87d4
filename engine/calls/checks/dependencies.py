"""Checks whether the dependencies of the tool exist."""

from pydantic import JsonValue

from engine.calls.checks.asked import Asked, Check, Sources
from engine.calls.endings import Refused
from engine.calls.lookup import ToolLookup
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import ToolDependency, ToolManifest, ToolStatus
from toolagent.validation.versions import NoSuchVersion, NotARangeError

_ANY = "*"


async def _check(asked: Asked, sources: Sources) -> Asked:
    if (error := await unmet_dependencies(asked.manifest, sources.lookup)) is not None:
        raise error
    return asked


async def unmet_dependencies(manifest: ToolManifest, lookup: ToolLookup) -> Refused | None:
    """The refusal that names missing direct dependencies; None if all exist."""
    missing = [(needed, reason) for needed in manifest.dependencies if (reason := await _why_not(needed, lookup))]
    if not missing:
        return None
    told = "; ".join(f"{needed.tool_id} {needed.version}: {reason}" for needed, reason in missing)
    details: list[JsonValue] = [{"tool_id": needed.tool_id, "version": needed.version, "reason": reason} for needed, reason in missing]
    message = f"Tool {manifest.tool_id!r} needs other tools that cannot be called: {told}."
    return Refused(ErrorType.DEPENDENCY_ERROR, message, {"dependencies": details})


async def _why_not(needed: ToolDependency, lookup: ToolLookup) -> str | None:
    try:
        found = await lookup.find(needed.tool_id, None if needed.version == _ANY else needed.version)
    except NotARangeError as error:
        return str(error)
    if found is None:
        return "there is no such tool"
    if isinstance(found, NoSuchVersion):
        return f"no such version can be called; there is {', '.join(found.versions[:20])}"
    status = found.manifest.status
    return None if status is ToolStatus.ACTIVE else f"version {found.manifest.version} is {status.value}"


CHECK = Check("dependencies", "the tool's `dependencies`, the registry", _check, (ErrorType.DEPENDENCY_ERROR,))
