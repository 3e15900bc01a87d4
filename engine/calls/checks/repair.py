"""Checks whether the version is under repair.

The version before it may stand in.
"""

from dataclasses import replace
from typing import NoReturn

from engine.calls.checks.asked import Asked, Check, Sources, Trouble
from engine.calls.endings import Refused
from engine.calls.lookup import entry_in
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import ToolStatus
from toolagent_service.contracts.repairs import Meanwhile

UNDER_REPAIR = "under_repair"
"""`details.reason` of a call that is refused during the repair."""


async def _check(asked: Asked, sources: Sources) -> Asked:
    manifest = asked.manifest
    trouble = await sources.troubles.of(manifest.tool_id, manifest.version)
    if trouble is None or not trouble.task_id or trouble.meanwhile is Meanwhile.SERVE:
        return asked
    before = await _before_it(asked, sources, trouble)
    return before or (asked if asked.is_stop else _refuse(asked, trouble))


async def _before_it(asked: Asked, sources: Sources, trouble: Trouble) -> Asked | None:
    """The call with the version before. None if it names its version, or needs the state of one."""
    named = asked.call.version or asked.prefer_version
    if trouble.meanwhile is not Meanwhile.PREVIOUS or trouble.previous is None or named is not None:
        return None
    entry = await entry_in(sources.lookup, asked.manifest.tool_id, trouble.previous)
    if entry is None or entry.manifest.status is not ToolStatus.ACTIVE:
        return None
    return replace(asked, entry=entry, instead_of=asked.manifest.version, repair=trouble.task_id)


def _refuse(asked: Asked, trouble: Trouble) -> NoReturn:
    manifest = asked.manifest
    message = (
        f"Version {manifest.version} of tool {manifest.tool_id!r} is being repaired, because its calls failed. "
        f"GET /tasks/{trouble.task_id} says how far that is; call again when it has ended."
    )
    details = {"reason": UNDER_REPAIR, "task_id": trouble.task_id, "version": manifest.version, "sent": False}
    raise Refused(ErrorType.UNAVAILABLE, message, {**details})


CHECK = Check("repair", "repairs from production, the version before", _check, (ErrorType.UNAVAILABLE,))
