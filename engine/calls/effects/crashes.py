"""Remembers parameters during whose call the process of the tool ended.

The second time they are quarantined.
"""

import structlog

from engine.calls.effects.ended import Effect, Ended, Places
from toolagent.core.calls.masking import masked_text
from toolagent.core.texts import well_formed
from toolagent_service.calls.blame import process_end, was_alone

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


async def _note(ended: Ended, places: Places) -> Ended:
    error = ended.result.error
    if error is None or not ended.was_started or (told := process_end(error)) is None:
        return ended
    if await places.note_crash(ended.record, well_formed(masked_text(told)), alone=was_alone(error)):
        _log.warning("input_quarantined", tool_id=ended.record.tool_id, version=ended.record.version, call_id=ended.record.call_id)
    return ended


EFFECT = Effect("crashes", "remembers an input during which the tool's process ended; the second time it is quarantined", _note)
