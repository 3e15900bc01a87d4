"""For servers that ask questions before they answer (2026-07-28): sends the request again with the answers, until there is a result."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import cast

from mcp import MCPError
from pydantic import JsonValue

from engine.runtimes.mcp.codes import DECLINED, STRANGE
from engine.runtimes.runtime import Asked, Dialogue
from toolagent.contracts.call_messages import ANSWER_OF
from toolagent.core.texts import shortened, well_formed, well_formed_value

_MOST_ROUNDS = 32
_MOST_AT_ONCE = 16
_LONGEST_METHOD = 100
_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 1.0
"""Pauses before the request is sent again, if the server wants more input without a question."""

Send = Callable[[Mapping[str, JsonValue]], Awaitable[dict[str, JsonValue]]]
"""Sends the request with these parameters besides its own, and returns the result. Raises MCPError."""


async def answered(send: Send, dialogue: Dialogue) -> dict[str, JsonValue]:
    """The final result. Raises MCPError, also if the caller does not answer a question."""
    more: dict[str, JsonValue] = {}
    pause_s = _PAUSE_S
    for _ in range(_MOST_ROUNDS):
        result = await send(more)
        if result.get("resultType") != "input_required":
            return result
        asked, state = result.get("inputRequests"), result.get("requestState")
        more = {"requestState": state} if isinstance(state, str) else {}
        if isinstance(asked, dict) and asked:
            more["inputResponses"] = await _answers(cast("dict[str, JsonValue]", asked), dialogue)
        else:
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
    raise MCPError(code=STRANGE, message=f"The server asked for more {_MOST_ROUNDS} times without a result.")


async def _answers(asked: Mapping[str, JsonValue], dialogue: Dialogue) -> dict[str, JsonValue]:
    if len(asked) > _MOST_AT_ONCE:
        raise MCPError(code=STRANGE, message=f"The server asked {len(asked)} things at once; at most {_MOST_AT_ONCE} are answered.")
    questions = [_question(key, one) for key, one in asked.items()]
    answers = await dialogue.ask(questions)
    return {key: _result(one, answer) for key, one, answer in zip(asked, questions, answers, strict=True)}


def _question(key: str, asked: object) -> Asked:
    method = cast("dict[str, JsonValue]", asked).get("method") if isinstance(asked, dict) else None
    if not isinstance(method, str) or method not in ANSWER_OF:
        told = shortened(str(method), _LONGEST_METHOD)
        raise MCPError(code=STRANGE, message=f"The server asked a question that the protocol does not have: {told}")
    params = cast("dict[str, JsonValue]", asked).get("params")
    given = well_formed_value(cast("dict[str, JsonValue]", params) if isinstance(params, dict) else {})
    return Asked(method, cast("dict[str, JsonValue]", given), well_formed(key))


def _result(asked: Asked, answer: Mapping[str, JsonValue]) -> JsonValue:
    match answer:
        case {"result": result}:
            return result
        case {"error": {"message": str() as why}}:
            raise MCPError(code=DECLINED, message=f"The tool asked for {asked.question}, which was not answered: {why}")
        case _:
            raise MCPError(code=DECLINED, message=f"The tool asked for {asked.question}, which was not answered.")
