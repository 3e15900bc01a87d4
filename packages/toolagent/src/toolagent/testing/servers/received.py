"""Assembles the message of a real endpoint from its stream or its body."""

import json
from collections.abc import Iterator
from typing import cast

from pydantic import JsonValue

__all__ = ["received_message"]

_Json = dict[str, JsonValue]


def received_message(body: bytes, content_type: str) -> _Json | None:
    """The message; None if it is incomplete, or not a message."""
    try:
        if content_type.startswith("text/event-stream"):
            return _assembled([*_events(body)])
        message = cast("JsonValue", json.loads(body))
    except (ValueError, KeyError, IndexError, TypeError):
        return None
    return message if isinstance(message, dict) and message.get("type") == "message" else None


def _events(body: bytes) -> Iterator[_Json]:
    # Only \n and \r end a line of an event; str.splitlines knows more line ends.
    for line in body.replace(b"\r\n", b"\n").split(b"\n"):
        if line.startswith(b"data:"):
            yield cast("_Json", json.loads(line.removeprefix(b"data:")))


def _assembled(events: list[_Json]) -> _Json | None:
    if not events or events[-1].get("type") != "message_stop":
        return None
    message: _Json = {}
    content: dict[int, _Json] = {}
    inputs: dict[int, str] = {}
    for event in events:
        match event:
            case {"type": "message_start", "message": dict(begun)}:
                message = {**begun}
            case {"type": "content_block_start", "index": int(index), "content_block": dict(block)}:
                content[index] = {**block}
            case {"type": "content_block_delta", "index": int(index), "delta": dict(delta)}:
                _add(content[index], delta)
                inputs[index] = inputs.get(index, "") + str(delta.get("partial_json", ""))
            case {"type": "message_delta", "delta": dict(delta), "usage": dict(usage)}:
                before = message.get("usage")
                known = {key: value for key, value in usage.items() if value is not None}
                message |= {**delta, "usage": {**(before if isinstance(before, dict) else {}), **known}}
            case _:
                continue
    return {**message, "content": [_with_input(content[index], inputs.get(index)) for index in sorted(content)]}


def _with_input(block: _Json, text: str | None) -> _Json:
    return {**block, "input": cast("JsonValue", json.loads(text))} if text else block


def _add(block: _Json, delta: _Json) -> None:
    for field in ("text", "thinking", "signature"):
        if isinstance(more := delta.get(field), str):
            block[field] = f"{block.get(field) or ''}{more}"
