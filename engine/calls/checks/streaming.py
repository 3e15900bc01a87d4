"""Whether the tool streams, where the caller wants that."""

from engine.calls.checks.asked import Asked, Check, Refused, Sources
from toolagent.contracts.calls import ErrorType, ToolError, ValidationIssue

__all__ = ["CHECK"]


async def _check(asked: Asked, sources: Sources) -> Asked:  # noqa: ARG001 - a check
    if not asked.call.stream or asked.manifest.stream_support:
        return asked
    message = f"Tool {asked.manifest.tool_id!r} does not stream; leave out `stream`."
    issue = ValidationIssue(path="$.stream", message=message, keyword="stream")
    raise Refused(ToolError(type=ErrorType.VALIDATION_ERROR, message=message), (issue,))


CHECK = Check("streaming", "the call's `stream`, the tool's `stream_support`", _check, (ErrorType.VALIDATION_ERROR,))
