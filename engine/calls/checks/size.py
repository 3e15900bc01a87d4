"""Checks the size of the parameters."""

from pydantic import JsonValue
from pydantic_core import to_json

from engine.calls.checks.asked import Asked, CallLimits, Check, Sources
from engine.calls.endings import Refused
from toolagent.contracts.calls import ErrorType
from toolagent.core.calls.json_size import excess_of
from toolagent.core.calls.results import TOO_LARGE


async def _check(asked: Asked, sources: Sources) -> Asked:
    require_size(asked.params, sources.limits)
    return asked


def require_size(params: dict[str, JsonValue], limits: CallLimits) -> None:
    encoded = to_json(params)
    size, limit = len(encoded), limits.max_params_bytes
    if size > limit:
        message = (
            f"The parameters are {size} bytes of JSON; at most {limit} are taken (TOOL_AGENT_MAX_PARAMS_BYTES). POST /files takes files."
        )
        raise Refused(ErrorType.VALIDATION_ERROR, message, {"reason": TOO_LARGE, "size": size, "limit": limit})
    if (excess := excess_of(encoded, limits.max_values)) is not None:
        setting = " (TOOL_AGENT_MAX_VALUES). POST /files takes files." if excess.of == "values" else "."
        raise Refused(ErrorType.VALIDATION_ERROR, f"The JSON of the parameters {excess}{setting}", excess.details)


CHECK = Check("size", "the parameters, the limits of the service", _check, (ErrorType.VALIDATION_ERROR,))
