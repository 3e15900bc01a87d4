"""The content of an MCP tool's result, in the form that a call's result stores for MCP clients.

Without `structuredContent`, the output of the call is `{text, content}`: all texts in one, and the other blocks. A layout gives
their order, without repeating any content:

- a number stands for a text of this many characters, an object with `length` for a text with further members;
- null stands for the next block of `content`.
"""

import json
from collections.abc import Sequence
from typing import TypeAlias

from pydantic import JsonValue

Block: TypeAlias = dict[str, JsonValue]

_MOST_BYTES = 64 * 1024
"""Bytes of blocks beside structured content. Larger ones are left out."""

JOINT = "\n"


def output_of(blocks: Sequence[Block]) -> dict[str, JsonValue]:
    """The output of a result without structured content."""
    others: list[JsonValue] = [block for block in blocks if block.get("type") != "text"]
    output: dict[str, JsonValue] = {"text": JOINT.join(_text(block) for block in blocks if block.get("type") == "text")}
    return {**output, "content": others} if others else output


def layout_of(blocks: Sequence[Block]) -> list[JsonValue]:
    """The layout of these blocks."""
    return [_part(block) for block in blocks]


def kept_beside(blocks: Sequence[Block], structured: JsonValue) -> list[JsonValue] | None:
    """The blocks beside structured content; None if they only repeat it, or are too large."""
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
    """Whether a text repeats the structured content."""
    try:
        return bool(json.loads(text) == structured)
    except (ValueError, RecursionError):
        return False
