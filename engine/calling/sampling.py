"""Answers `sampling/createMessage` of MCP by our own model, for callers without one."""

import json

import structlog
from pydantic import JsonValue, ValidationError

from engine.roles.prices import Prices
from engine.roles.provider import ModelFailure, ModelProvider
from engine.store.clock import now
from engine.store.model_turns import ModelTurnTable
from toolagent.core.failures import StoreUnavailableError
from toolagent_service.contracts.model import Message, ModelRequest, ModelTurn, Text

_MOST_TOKENS = 4_096
_MOST_TURNS = 8
"""Answers in one call: they cost us money."""

_MOST_CHARACTERS = 64 * 1024
_REFUSED = -32_602
_FAILED = -32_603
_STOPS = {"end_turn": "endTurn", "max_tokens": "maxTokens", "stop_sequence": "stopSequence"}

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class ModelSampling:
    """Takes only texts, and few of them. Records the cost in the ledger, under the id of the call."""

    def __init__(self, provider: ModelProvider, prices: Prices, turns: ModelTurnTable) -> None:
        self._provider, self._prices, self._turns = provider, prices, turns

    async def answer(self, call_id: str, number: int, params: dict[str, JsonValue]) -> dict[str, JsonValue]:
        """Answers question `number` of a call, from 1: `{result}` in the form of MCP, or `{error: {code, message}}`."""
        try:
            request = _request(params)
        except (ValueError, ValidationError) as error:
            return _error(_REFUSED, f"Our model cannot be asked this: {' '.join(str(error).split())[:300]}")
        if number > _MOST_TURNS:
            return _error(_REFUSED, f"Our model answers at most {_MOST_TURNS} times in one call.")
        began = now()
        try:
            turn = self._prices.priced(await self._provider.ask(request, lambda _: None), self._provider.model)
            key, question = f"sampling:{number}", request.messages[-1]
            await self._turns.record(call_id, key, turn, began, now(), position=2 * number, question=question)
        except ModelFailure as failure:
            return _error(_FAILED, failure.message)
        except StoreUnavailableError as error:
            _log.warning("sampling_not_recorded", call_id=call_id, reason=str(error))
            return _error(_FAILED, "What our model said could not be recorded.")
        return {"result": _result(turn)}


def _request(params: dict[str, JsonValue]) -> ModelRequest:
    """Raises ValueError for anything but text, or for too much of it."""
    if len(json.dumps(params)) > _MOST_CHARACTERS:
        raise ValueError(f"it is longer than {_MOST_CHARACTERS} characters")
    messages, most, system = params.get("messages"), params.get("maxTokens"), params.get("systemPrompt")
    if not isinstance(messages, list) or not isinstance(most, int) or params.get("tools"):
        raise ValueError("`messages` and `maxTokens` are needed, and tools are not offered")
    said = tuple(_message(message if isinstance(message, dict) else {}) for message in messages)
    return ModelRequest(system=system if isinstance(system, str) else "", messages=said, max_tokens=min(most, _MOST_TOKENS))


def _message(message: dict[str, JsonValue]) -> Message:
    content = message.get("content")
    blocks = content if isinstance(content, list) else [content]
    texts = [block.get("text") if isinstance(block, dict) and block.get("type") == "text" else None for block in blocks]
    return Message.model_validate({"role": message.get("role"), "content": [{"type": "text", "text": text} for text in texts]})


def _result(turn: ModelTurn) -> dict[str, JsonValue]:
    text = "".join(block.text for block in turn.content if isinstance(block, Text))
    stop = _STOPS.get(turn.stop_reason, turn.stop_reason)
    return {"role": "assistant", "content": {"type": "text", "text": text}, "model": turn.model, "stopReason": stop}


def _error(code: int, message: str) -> dict[str, JsonValue]:
    return {"error": {"code": code, "message": message}}
