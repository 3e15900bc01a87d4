"""Which version of which tool is called: exactly one, which the call keeps whatever is activated meanwhile."""

from dataclasses import replace

from pydantic import JsonValue

from engine.calls.checks.asked import Asked, Check, Refused, Sources
from toolagent.contracts.calls import ErrorType, ToolCall, ToolError, ValidationIssue
from toolagent.core.suggestions import nearest
from toolagent.validation.versions import NoSuchVersion, NotARangeError

__all__ = ["CHECK"]


async def _check(asked: Asked, sources: Sources) -> Asked:
    call = asked.call
    try:
        found = await sources.lookup.find(call.tool_id, call.version)
    except NotARangeError as error:
        issue = ValidationIssue(path="$.version", message=str(error), keyword="version")
        raise Refused(ToolError(type=ErrorType.VALIDATION_ERROR, message=str(error)), (issue,)) from error
    if isinstance(found, NoSuchVersion):
        raise Refused(_no_such_version(call, found))
    if found is not None:
        return replace(asked, entry=found)
    near = nearest(call.tool_id, await sources.lookup.list_ids())
    hint = f" Did you mean {', '.join(near)}?" if near else " GET /tools lists what there is."
    message = f"There is no tool {call.tool_id!r}.{hint}"
    raise Refused(ToolError(type=ErrorType.TOOL_NOT_FOUND, message=message, details={"nearest": list(near)}))


def _no_such_version(call: ToolCall, found: NoSuchVersion) -> ToolError:
    shown = ", ".join(version if version in found.callable else f"{version} (cannot be called)" for version in found.versions[:20])
    message = f"Tool {call.tool_id!r} has no version {call.version!r} that can be called; it has {shown}. The active one is {found.active}."
    details: JsonValue = {"active_version": found.active, "versions": [*found.versions]}
    return ToolError(type=ErrorType.TOOL_NOT_FOUND, message=message, details=details)


CHECK = Check("tool", "the registry", _check, (ErrorType.TOOL_NOT_FOUND, ErrorType.VALIDATION_ERROR))
