"""A request in any language leads to a name that calls can use."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolagent.contracts.identifiers import TOOL_ID_PATTERN
from toolagent.validation.tool_names import tool_name_for


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("需要一个图片压缩工具", "tupian_yasuo"),
        ("做一个统计字数的小工具", "tongji_zishu"),
        ("请帮我写一个能把 PDF 转换成文字的程序。要快。", "pdf_zhuanhuancheng_wenzi"),
        ("生成摘要,最多 3 句", "zhaiyao"),
        ("工具", "gongju"),
        ("帮我写个脚本,把csv转成excel", "csv_zhuancheng_excel"),
        ("脚本把csv转成excel", "csv_zhuancheng_excel"),
        ("3D 打印", "dayin"),
        ("Count the words of a text", "count_words_text"),
    ],
)
def test_a_name_follows_from_the_words(words: str, name: str) -> None:
    assert tool_name_for(words) == name


def test_the_first_text_that_gives_a_name_counts() -> None:
    assert tool_name_for("", "…", "翻译") == "fanyi"


def test_words_that_give_none_have_a_name_all_the_same_and_others_another() -> None:
    assert re.fullmatch(r"tool_[0-9a-f]{8}", tool_name_for("картинки"))
    assert tool_name_for("картинки") == tool_name_for("картинки") != tool_name_for("тексты")


@given(st.text(max_size=60))
def test_whatever_is_said_the_name_is_an_id(words: str) -> None:
    assert re.fullmatch(TOOL_ID_PATTERN, tool_name_for(words))
