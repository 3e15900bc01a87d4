"""Which version of which tool is called. The call keeps this version, whichever is activated meanwhile."""

from dataclasses import replace

from engine.calls.checks.asked import Asked, Check, Sources
from engine.calls.endings import Refused
from toolagent.contracts.calls import ErrorType, ToolCall, ValidationIssue
from toolagent.core.suggestions import nearest
from toolagent.validation.versions import NoSuchVersion, NotARangeError


async def _check(asked: Asked, sources: Sources) -> Asked:
    call = asked.call
    try:
        found = await sources.lookup.find(call.tool_id, call.version)
    except NotARangeError as error:
        issue = ValidationIssue(path="$.version", message=str(error), keyword="version")
        raise Refused(ErrorType.VALIDATION_ERROR, str(error), issues=(issue,)) from error
    if isinstance(found, NoSuchVersion):
        raise _no_such_version(call, found)
    if found is not None:
        return replace(asked, entry=found)
    near = nearest(call.tool_id, await sources.lookup.list_ids())
    hint = f" Did you mean {', '.join(near)}?" if near else " GET /tools lists what there is."
    raise Refused(ErrorType.TOOL_NOT_FOUND, f"There is no tool {call.tool_id!r}.{hint}", {"nearest": list(near)})


def _no_such_version(call: ToolCall, found: NoSuchVersion) -> Refused:
    shown = ", ".join(version if version in found.callable else f"{version} (cannot be called)" for version in found.versions[:20])
    message = f"Tool {call.tool_id!r} has no version {call.version!r} that can be called; it has {shown}. The active one is {found.active}."
    return Refused(ErrorType.TOOL_NOT_FOUND, message, {"active_version": found.active, "versions": [*found.versions]})


CHECK = Check("tool", "the registry", _check, (ErrorType.TOOL_NOT_FOUND, ErrorType.VALIDATION_ERROR))
