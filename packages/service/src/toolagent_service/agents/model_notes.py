"""Short notes about answers and outcomes, for the workflow."""

import hashlib
import json
from collections.abc import Callable
from itertools import islice

from pydantic import JsonValue

from toolagent_service.agents.coding_log import shown_text, shown_use
from toolagent_service.contracts.agent import ModelTurnNote, ToolUseNote
from toolagent_service.contracts.model import ModelTurn, Text, ToolUse

MOST_USES = 32
"""The most uses in one turn. Further ones are answered as not run."""

_LONGEST_SUMMARY = 160
_LONGEST_SAID = 400
_LONGEST_FAULT = 2_000
_CUT_SHORT = frozenset({"max_tokens", "model_context_window_exceeded"})
_HALF = "Not run: your answer was cut off in the middle of this call, because it was too long. Make it in smaller steps: "


def note_of(turn: ModelTurn, smaller_steps: str, fault_of: Callable[[ToolUse], str]) -> ModelTurnNote:
    """The note about an answer. `smaller_steps` is the role's remark for answers that were too long.

    `fault_of` says why a use is not run (unknown tool, invalid arguments), in words for the model; empty: it is run.
    """
    uses = [block for block in turn.content if isinstance(block, ToolUse)]
    half = turn.content[-1] if turn.stop_reason in _CUT_SHORT and turn.content else None
    said = " ".join(block.text for block in turn.content if isinstance(block, Text))
    return ModelTurnNote(
        stop_reason=turn.stop_reason,
        model=turn.model,
        usage=turn.usage,
        cost_usd=turn.cost_usd,
        said=shown_text(said, _LONGEST_SAID),
        uses=tuple(
            ToolUseNote(
                id=use.id,
                name=use.name[:_LONGEST_SUMMARY],
                summary=shown_text(shown_use(use.name, use.input), _LONGEST_SUMMARY),
                input_digest=digest_of(use.input),
                fault=f"{_HALF}{smaller_steps}" if use is half else fault_of(use)[:_LONGEST_FAULT],
            )
            for use in islice(uses, MOST_USES)
        ),
    )


def digest_of(value: JsonValue) -> str:
    """32 hex digits. Equal values have the same, whatever the order of their keys."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).hexdigest()[:32]


def key_of_use(position: int, tool_use_id: str) -> str:
    """The key of a use in the store, at most 64 characters. A model may repeat an id, but not in one message.

    The outcome of the use is stored under this key.
    """
    return f"use:{position}:{hashlib.sha256(tool_use_id.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
