"""A check of a call that the service does not have, written like any other."""

from engine.calls.checks.asked import Asked, Check, Sources
from engine.calls.endings import Refused
from toolagent.contracts.calls import ErrorType


async def _check(asked: Asked, _: Sources) -> Asked:
    if asked.call.caller.caller_id == "somebody-else":
        raise Refused(ErrorType.PERMISSION_DENIED, "This tool is not for everybody.")
    return asked


CHECK = Check("second", "the caller", _check, (ErrorType.PERMISSION_DENIED,))
