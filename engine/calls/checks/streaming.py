"""Checks whether the tool can stream, if that is requested."""

from engine.calls.checks.asked import Asked, Check, Sources
from engine.calls.endings import Refused
from toolagent.contracts.calls import ErrorType, ValidationIssue


async def _check(asked: Asked, _: Sources) -> Asked:
    if not asked.call.stream or asked.manifest.stream_support:
        return asked
    message = f"Tool {asked.manifest.tool_id!r} does not stream; leave out `stream`."
    raise Refused(ErrorType.VALIDATION_ERROR, message, issues=(ValidationIssue(path="$.stream", message=message, keyword="stream"),))


CHECK = Check("streaming", "the call's `stream`, the tool's `stream_support`", _check, (ErrorType.VALIDATION_ERROR,))
