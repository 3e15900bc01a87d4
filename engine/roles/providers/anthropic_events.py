"""Builds an answer from the events of its stream."""

import time
from collections.abc import Callable
from typing import Any

from pydantic_core import from_json

from engine.roles.provider import BusyKind, ModelBusy
from engine.roles.providers.anthropic_wire import turn_of, usage_of
from toolagent_service.contracts.model import ModelTurn, Usage

_ARGUMENTS = "partial_json"
_GROWING = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": _ARGUMENTS}
"""Deltas whose pieces are joined, and their fields."""


class AnswerSoFar:
    """The part of an answer that has come. `usage` is what it cost so far."""

    def __init__(self, hear: Callable[[str], None]) -> None:
        self._hear = hear
        self.usage: Usage | None = None
        self._begun = time.monotonic()
        self._characters = 0
        self._doing = "waiting for the model"
        self._model, self._stop_reason, self._is_whole = "", "", False
        self._counts: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._pieces: dict[tuple[int, str], list[str]] = {}

    def __str__(self) -> str:
        return f"{self._doing}: {time.monotonic() - self._begun:.0f} s, {self._characters:,} characters"

    def take(self, event: Any) -> None:
        """Raises ValueError, TypeError, KeyError or AttributeError for a malformed event."""
        kind = event["type"]
        if self.usage is None and kind in {"content_block_start", "content_block_delta", "message_delta", "message_stop"}:
            raise ValueError(f"{kind} came before message_start")
        match kind:
            case "message_start":
                self._model, self._counts = event["message"]["model"], {**event["message"]["usage"]}
                self.usage = usage_of(self._counts)
                self._doing = "the model answers"
            case "content_block_start":
                block = self._blocks[event["index"]] = {**event["content_block"]}
                self._doing = _doing(block)
            case "content_block_delta":
                self._take_delta(event["index"], event["delta"])
            case "message_delta":
                self._stop_reason = event["delta"].get("stop_reason") or ""
                # Totals; missing counts stay as they were.
                self._counts |= {name: count for name, count in event["usage"].items() if count is not None}
            case "message_stop":
                self._is_whole = True
                self.usage = usage_of(self._counts)
            case _:
                pass

    def turn(self) -> ModelTurn:
        """Raises ModelBusy if the answer is incomplete, ValueError if a part of it is malformed."""
        if self.usage is None or not self._is_whole:
            kind = BusyKind.CUT if self.usage is not None else BusyKind.MALFORMED
            raise ModelBusy(kind, "The stream ended before the answer did.", usage=self.usage)
        for (index, field), pieces in self._pieces.items():
            block, written = self._blocks[index], "".join(pieces)
            if field != _ARGUMENTS:
                block[field] = (block.get(field) or "") + written
            elif written.strip():
                # An answer that was cut for its length may end within a call.
                block["input"] = from_json(written, allow_partial=self._stop_reason != "tool_use")
        return turn_of([block for _, block in sorted(self._blocks.items())], self._stop_reason, self._model, self.usage)

    def _take_delta(self, index: int, delta: dict[str, Any]) -> None:
        block, kind = self._blocks[index], delta["type"]
        if (field := _GROWING.get(kind)) is not None:
            self._pieces.setdefault((index, field), []).append(delta[field])
            self._characters += len(delta[field])
            if field == "text":
                self._hear(delta[field])
        elif kind == "signature_delta":
            block["signature"] = delta["signature"]
        elif kind == "citations_delta":
            block["citations"] = [*(block.get("citations") or ()), delta["citation"]]


def _doing(block: dict[str, Any]) -> str:
    match block:
        case {"type": "tool_use", "name": str(name)}:
            return f"writing a call of {name[:60]}"
        case {"type": "text"}:
            return "writing"
        case _:
            return "thinking"
