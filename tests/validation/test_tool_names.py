"""A tool that is asked for in words of any language has a name that calls can use."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolagent.contracts.identifiers import TOOL_ID_PATTERN
from toolagent.validation.tool_names import tool_name_for


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("需要一个图片压缩工具", "tu_pian_ya_suo"),
        ("做一个统计字数的小工具", "tong_ji_zi_shu"),
        ("请帮我写一个能把 PDF 转换成文字的程序。要快。", "ba_pdf_zhuan_huan_cheng_wen"),
        ("生成摘要,最多 3 句", "zhai_yao"),
        ("工具", "gong_ju"),
        ("3D 打印", "da_yin"),
        ("Count the words of a text", "count_words_text"),
    ],
)
def test_a_name_follows_from_the_words(words: str, name: str) -> None:
    assert tool_name_for(words) == name


def test_the_first_text_that_gives_a_name_counts() -> None:
    assert tool_name_for("", "…", "翻译") == "fan_yi"


def test_words_that_give_none_have_a_name_all_the_same_and_others_another() -> None:
    assert re.fullmatch(r"tool_[0-9a-f]{8}", tool_name_for("картинки"))
    assert tool_name_for("картинки") == tool_name_for("картинки") != tool_name_for("тексты")


@given(st.text(max_size=60))
def test_whatever_is_said_the_name_is_an_id(words: str) -> None:
    assert re.fullmatch(TOOL_ID_PATTERN, tool_name_for(words))
