"""Checks the parameters, with defaults, against the input schema."""

from dataclasses import replace

from engine.calls.checks.asked import Asked, Check, Sources
from engine.calls.checks.size import require_size
from engine.calls.endings import Refused
from toolagent.contracts.calls import ErrorType
from toolagent.core.schemas import with_defaults
from toolagent.validation.schemas import find_issues

_TOLD = 3


async def _check(asked: Asked, sources: Sources) -> Asked:
    schema = asked.manifest.input_schema
    params = with_defaults(schema, asked.params)
    if params != asked.params:
        require_size(params, sources.limits)
    issues = await find_issues(schema, params)
    if not issues:
        return replace(asked, params=params)
    listed = "; ".join(f"{issue.path}: {issue.message}" for issue in issues[:_TOLD])
    more = f" (and {len(issues) - _TOLD} more)" if len(issues) > _TOLD else ""
    raise Refused(ErrorType.VALIDATION_ERROR, f"The parameters do not fit the tool's input schema: {listed}{more}", issues=issues)


CHECK = Check("parameters", "the parameters, the tool's `input_schema`", _check, (ErrorType.VALIDATION_ERROR,))
