"""The blocks of an MCP tool's result, assembled from the layout and the output that a call keeps."""

from collections.abc import Iterable, Mapping
from typing import cast

from pydantic import JsonValue

from toolagent_service.calls.mcp_contents import JOINT, Block


def blocks_of(layout: Iterable[JsonValue], output: Mapping[str, JsonValue]) -> list[Block]:
    """The blocks as the tool sent them."""
    text, others = str(output.get("text", "")), iter(cast("list[Block]", output.get("content") or []))
    blocks: list[Block] = []
    at = 0
    for part in layout:
        match part:
            case None:
                blocks.append(next(others))
                continue
            case {"length": int() as length, **more}:
                blocks.append({"type": "text", "text": text[at : at + length], **more})
            case int() as length:
                blocks.append({"type": "text", "text": text[at : at + length]})
            case _:
                raise ValueError("It is no part of a layout.")
        at += length + len(JOINT)
    return blocks
