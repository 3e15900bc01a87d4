"""Finds the version that is called.

The call keeps it, even if another version is activated meanwhile.
"""

from dataclasses import replace

from pydantic import JsonValue

from engine.calls.checks.asked import Asked, Check, Sources
from engine.calls.checks.status import is_callable
from engine.calls.endings import Refused
from engine.calls.lookup import entry_in
from toolagent.contracts.calls import ErrorType, ToolCall, ValidationIssue
from toolagent.core.suggestions import nearest
from toolagent.validation.versions import NoSuchVersion, NotARangeError

_TO_CREATE: JsonValue = {"method": "POST", "path": "/create_tool"}


async def _check(asked: Asked, sources: Sources) -> Asked:
    call = asked.call
    if call.version is None and asked.prefer_version is not None:
        preferred = await entry_in(sources.lookup, call.tool_id, asked.prefer_version)
        if preferred is not None and is_callable(preferred.manifest, is_stop=asked.is_stop):
            return replace(asked, entry=preferred)
    try:
        found = await sources.lookup.find(call.tool_id, call.version)
    except NotARangeError as error:
        issue = ValidationIssue(path="$.version", message=str(error), keyword="version")
        raise Refused(ErrorType.VALIDATION_ERROR, str(error), issues=(issue,)) from error
    if isinstance(found, NoSuchVersion):
        raise _no_such_version(call, found)
    if found is not None:
        return replace(asked, entry=found)
    raise await _absent(call.tool_id, sources)


async def _absent(tool_id: str, sources: Sources) -> Refused:
    near = nearest(tool_id, await sources.lookup.list_ids())
    composite = await sources.composites.covering(tool_id)
    details: dict[str, JsonValue] = {"nearest": list(near), "create_tool": _TO_CREATE}
    if composite is not None:
        hint = f"The tools of the group {composite.group_id} do together what it would do; `details.composite` says how."
        details["composite"] = composite.model_dump(mode="json")
    else:
        hint = f"Did you mean {', '.join(near)}?" if near else "GET /tools lists what there is."
    return Refused(ErrorType.TOOL_NOT_FOUND, f"There is no tool {tool_id!r}. {hint} POST /create_tool builds one.", details)


def _no_such_version(call: ToolCall, found: NoSuchVersion) -> Refused:
    shown = ", ".join(version if version in found.callable else f"{version} (cannot be called)" for version in found.versions[:20])
    message = f"Tool {call.tool_id!r} has no version {call.version!r} that can be called; it has {shown}. The active one is {found.active}."
    return Refused(ErrorType.TOOL_NOT_FOUND, message, {"active_version": found.active, "versions": [*found.versions]})


CHECK = Check("tool", "the registry", _check, (ErrorType.TOOL_NOT_FOUND, ErrorType.VALIDATION_ERROR))
