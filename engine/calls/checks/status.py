"""Checks whether the version may be called now."""

from engine.calls.checks.asked import Asked, Check, Sources
from engine.calls.endings import Refused
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import ToolManifest, ToolStatus


def is_callable(manifest: ToolManifest, *, is_stop: bool) -> bool:
    """A deactivated version may still be called to stop a session."""
    return manifest.status is ToolStatus.ACTIVE or (is_stop and manifest.status is ToolStatus.INACTIVE)


async def _check(asked: Asked, _: Sources) -> Asked:
    manifest = asked.manifest
    if is_callable(manifest, is_stop=asked.is_stop):
        return asked
    message = f"Version {manifest.version} of tool {manifest.tool_id!r} is {manifest.status.value} and cannot be called."
    # Waiting helps for a version that is being made, not for a deactivated one.
    kind = ErrorType.TOOL_NOT_FOUND if manifest.status is ToolStatus.INACTIVE else ErrorType.UNAVAILABLE
    raise Refused(kind, message, {"status": manifest.status.value, "version": manifest.version})


CHECK = Check("status", "the tool's `status`", _check, (ErrorType.TOOL_NOT_FOUND, ErrorType.UNAVAILABLE))
