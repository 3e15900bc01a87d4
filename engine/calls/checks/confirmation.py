"""Checks whether the call needs the confirmation of a person."""

from engine.calls.checks.asked import Asked, Check, Sources
from engine.calls.endings import Refused
from toolagent.contracts.calls import ErrorType


async def _check(asked: Asked, _: Sources) -> Asked:
    manifest = asked.manifest
    if asked.is_stop or not manifest.requires_confirmation:
        return asked
    # There is no way to ask a person yet, and an unconfirmed run would break the promise of the manifest.
    message = f"Tool {manifest.tool_id!r} runs only after a person has confirmed the call, and this service cannot ask for a confirmation."
    raise Refused(ErrorType.PERMISSION_DENIED, message, {"reason": "requires_confirmation"})


CHECK = Check("confirmation", "the tool's `requires_confirmation`", _check, (ErrorType.PERMISSION_DENIED,))
