"""The content of an MCP tool's result, split and joined."""

from typing import cast

import pytest
from pydantic import JsonValue

from tests.blocks import blocks_of
from toolagent_service.calls.mcp_contents import Block, kept_beside, layout_of, output_of

PICTURE: Block = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
SOUND: Block = {"type": "audio", "data": "BBBB", "mimeType": "audio/wav"}


def text(said: str, **more: JsonValue) -> Block:
    return {"type": "text", "text": said, **more}


@pytest.mark.parametrize(
    "blocks",
    [
        [],
        [text("")],
        [text("one\ntwo")],
        [text(""), text(""), PICTURE, text("二", annotations={"priority": 1}), SOUND, text("\n")],
        [PICTURE, PICTURE],
    ],
)
def test_blocks_come_back_as_they_were(blocks: list[Block]) -> None:
    assert blocks_of(layout_of(blocks), output_of(blocks)) == blocks


def test_the_output_has_all_texts_in_one_and_beside_it_what_is_none() -> None:
    assert output_of([text("one"), PICTURE, text("two")]) == {"text": "one\ntwo", "content": [PICTURE]}
    assert output_of([text("one")]) == {"text": "one"}


def test_beside_structured_content_is_kept_what_says_something_else() -> None:
    structured = cast("JsonValue", {"a": [1]})
    assert kept_beside([text('{"a":\n[1]}')], structured) is None
    assert kept_beside([text("one")], structured) == [text("one")]
    assert kept_beside([text("[" * 100_000)], structured) is None
