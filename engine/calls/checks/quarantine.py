"""Checks whether the parameters are quarantined, because the process of the tool ended each time."""

from pydantic import JsonValue

from engine.calls.checks.asked import Asked, Check, Sources
from engine.calls.endings import Refused
from engine.calls.records import masked_of
from engine.store.quarantine import input_of
from toolagent.contracts.calls import ErrorType
from toolagent.core.calls.results import QUARANTINED


async def _check(asked: Asked, sources: Sources) -> Asked:
    manifest = asked.manifest
    trouble = await sources.troubles.of(manifest.tool_id, manifest.version)
    if trouble is None or not trouble.quarantined or asked.is_stop:
        return asked
    given = input_of(await masked_of(manifest.input_schema, asked.params))
    if given not in trouble.quarantined:
        return asked
    message = (
        f"Version {manifest.version} of tool {manifest.tool_id!r} is not asked this any more: its process ended each time. "
        f"Other parameters are served. A new version may be asked again; "
        f"DELETE /tools/{manifest.tool_id}/quarantine?input={given} lifts it for this one."
    )
    details: dict[str, JsonValue] = {"reason": QUARANTINED, "input": given, "version": manifest.version, "sent": False}
    raise Refused(ErrorType.REJECTED, message, {**details, **({"task_id": trouble.task_id} if trouble.task_id else {})})


CHECK = Check("quarantine", "the parameters, the quarantine of the version", _check, (ErrorType.REJECTED,))
