"""The content of an MCP tool's result, as a call's result keeps it for callers that speak MCP.

Of a result without `structuredContent` the output of the call is `{text, content}`: all texts in one, and what is no text. A layout says
in which order they came, without holding any of it again:

- a number stands for a text of so many characters, an object with `length` for one that has more members;
- null stands for the next block of `content`.
"""

import json
from collections.abc import Sequence
from typing import TypeAlias

from pydantic import JsonValue

Block: TypeAlias = dict[str, JsonValue]

_MOST_BYTES = 64 * 1024
"""Of blocks beside structured content; what is larger is left out."""

JOINT = "\n"


def output_of(blocks: Sequence[Block]) -> dict[str, JsonValue]:
    """The output of a result without structured content."""
    others: list[JsonValue] = [block for block in blocks if block.get("type") != "text"]
    output: dict[str, JsonValue] = {"text": JOINT.join(_text(block) for block in blocks if block.get("type") == "text")}
    return {**output, "content": others} if others else output


def layout_of(blocks: Sequence[Block]) -> list[JsonValue]:
    """How the output of these blocks is taken apart."""
    return [_part(block) for block in blocks]


def kept_beside(blocks: Sequence[Block], structured: JsonValue) -> list[JsonValue] | None:
    """The blocks beside structured content; None where they say nothing else, or too much."""
    if len(blocks) == 1 and blocks[0].get("type") == "text" and _says(_text(blocks[0]), structured):
        return None
    return [*blocks] if len(json.dumps(blocks)) <= _MOST_BYTES else None


def _part(block: Block) -> JsonValue:
    if block.get("type") != "text":
        return None
    length = len(_text(block))
    more = {name: value for name, value in block.items() if name not in ("type", "text")}
    return {"length": length, **more} if more else length


def _text(block: Block) -> str:
    return str(block.get("text", ""))


def _says(text: str, structured: JsonValue) -> bool:
    """Whether a text is the structured content once more."""
    try:
        return bool(json.loads(text) == structured)
    except (ValueError, RecursionError):
        return False
