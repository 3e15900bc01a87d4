"""A turn in the format of the Messages API: one message, or the events of a stream."""

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

from pydantic import JsonValue

from toolagent.testing.servers.scenario import Block, TextBlock, ThinkingBlock, ToolUseBlock

__all__ = ["Answer", "Event", "as_events", "as_message"]

_PIECES = 12
_LEAST = 16
"""A block is sent in at most `_PIECES` pieces, each of at least `_LEAST` characters."""


@dataclass(frozen=True)
class Event:
    """One server-sent event."""

    name: str
    data: str

    def encoded(self) -> bytes:
        return f"event: {self.name}\ndata: {self.data}\n\n".encode()


@dataclass(frozen=True)
class Answer:
    """What the model says. `ids` are those of its tool uses, in order; `usage` has the API's form."""

    model: str
    blocks: tuple[Block, ...]
    ids: tuple[str, ...]
    stop_reason: str
    stop_sequence: str | None
    usage: dict[str, JsonValue]


def as_message(answer: Answer) -> dict[str, JsonValue]:
    """The body of an answer that is not streamed."""
    content: list[JsonValue] = [_whole(block, given) for block, given in _named(answer)]
    return _message(answer, content) | {"stop_reason": answer.stop_reason, "stop_sequence": answer.stop_sequence}


def as_events(answer: Answer) -> Iterator[Event]:
    """All events of a stream, in the order of the API."""
    begun: dict[str, JsonValue] = {**_message(answer, []), "usage": {**answer.usage, "output_tokens": 1}}
    yield _event("message_start", message=begun)
    for index, (block, given) in enumerate(_named(answer)):
        yield _event("content_block_start", index=index, content_block=_begun(block, given))
        if index == 0:
            yield _event("ping")
        for delta in _deltas(block):
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    yield _event("message_delta", delta={"stop_reason": answer.stop_reason, "stop_sequence": answer.stop_sequence}, usage=answer.usage)
    yield _event("message_stop")


def _message(answer: Answer, content: list[JsonValue]) -> dict[str, JsonValue]:
    return {
        "id": f"msg_{uuid.uuid4().hex[:24]}",
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": content,
        "stop_reason": None,
        "stop_sequence": None,
        "usage": answer.usage,
    }


def _named(answer: Answer) -> Iterator[tuple[Block, str]]:
    ids = iter(answer.ids)
    for block in answer.blocks:
        yield block, next(ids) if isinstance(block, ToolUseBlock) else ""


def _whole(block: Block, given: str) -> dict[str, JsonValue]:
    return block.model_dump() | ({"id": given} if given else {})


def _begun(block: Block, given: str) -> dict[str, JsonValue]:
    """The block without its content, which follows in deltas."""
    empty: dict[str, JsonValue] = {"text": "", "input": {}, "thinking": "", "signature": ""}
    whole = _whole(block, given)
    return whole | {name: empty[name] for name in whole.keys() & empty.keys()}


def _deltas(block: Block) -> Iterator[dict[str, JsonValue]]:
    match block:
        case TextBlock(text=text):
            for piece in _pieces(text):
                yield {"type": "text_delta", "text": piece}
        case ToolUseBlock(input=values):
            # The API begins with an empty one.
            yield {"type": "input_json_delta", "partial_json": ""}
            for piece in _pieces(json.dumps(values, ensure_ascii=False) if values else ""):
                yield {"type": "input_json_delta", "partial_json": piece}
        case ThinkingBlock(thinking=thinking, signature=signature):
            for piece in _pieces(thinking):
                yield {"type": "thinking_delta", "thinking": piece}
            yield {"type": "signature_delta", "signature": signature}
        case _:
            assert_never(block)


def _pieces(text: str) -> Iterator[str]:
    size = max(_LEAST, -(-len(text) // _PIECES))
    yield from (text[start : start + size] for start in range(0, len(text), size))


def _event(name: str, **fields: JsonValue) -> Event:
    return Event(name, json.dumps({"type": name, **fields}, ensure_ascii=False))
