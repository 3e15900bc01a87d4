"""Whether the version may be called now."""

from pydantic import JsonValue

from engine.calls.checks.asked import Asked, Check, Refused, Sources
from toolagent.contracts.calls import ErrorType, ToolError
from toolagent.contracts.manifest import ToolStatus

__all__ = ["CHECK"]


async def _check(asked: Asked, sources: Sources) -> Asked:  # noqa: ARG001 - a check
    manifest = asked.manifest
    if manifest.status is ToolStatus.ACTIVE:
        return asked
    message = f"Version {manifest.version} of tool {manifest.tool_id!r} is {manifest.status.value} and cannot be called."
    details: JsonValue = {"status": manifest.status.value, "version": manifest.version}
    # What somebody took away does not come back by waiting; what is being made does.
    kind = ErrorType.TOOL_NOT_FOUND if manifest.status is ToolStatus.INACTIVE else ErrorType.UNAVAILABLE
    raise Refused(ToolError(type=kind, message=message, details=details))


CHECK = Check("status", "the tool's `status`", _check, (ErrorType.TOOL_NOT_FOUND, ErrorType.UNAVAILABLE))
