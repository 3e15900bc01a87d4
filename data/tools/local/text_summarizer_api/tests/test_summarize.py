from pathlib import Path
from typing import Any

import pytest
from msgspec import ValidationError, convert

import summarize
from sentences import split

CHINESE = (
    "人工智能正在改变医疗行业。深度学习模型在医学影像诊断中的准确率不断提高。今天天气不错。人工智能并不能取代医生，而是应当成为医生的助手。"
    "“技术让医生有更多时间陪伴病人。”一位医生说。许多医院要求人工智能系统在本地部署。总的来说，人工智能在医疗领域的前景广阔，但还需要医生和研究人员的努力。"
)
ENGLISH = (
    "Coral reefs cover less than one percent of the ocean floor. Rising sea temperatures have caused coral bleaching. "
    "Dr. Smith of the Univ. of Queensland has studied coral reefs since 1998. The cafeteria serves good coffee. "
    "Scientists breed corals that withstand higher sea temperatures and plant them on damaged coral reefs. "
    "Without cuts in emissions, rising sea temperatures would bleach most coral reefs every year."
)


def summary(text: str, **params: Any) -> dict[str, Any]:
    result = summarize.run(convert({"text": text, **params}, summarize.Params), Path())
    assert result["summary_length"] == len(result["summary"]) <= params.get("max_length", 500)
    assert result["original_length"] == len(text)
    return result


@pytest.mark.parametrize(("text", "language", "length"), [(CHINESE, "zh", 90), (ENGLISH, "en", 250)])
def test_a_summary_is_some_of_the_sentences_in_their_order(text: str, language: str, length: int) -> None:
    result = summary(text, max_length=length)
    picked, sentences = list(split(result["summary"])), list(split(text))
    assert result["language"] == language
    assert result["sentence_count"] == len(picked) >= 2
    assert picked == sorted(picked, key=sentences.index)
    assert "今天天气不错。" not in picked and "The cafeteria serves good coffee." not in picked


def test_sentences_end_where_they_should() -> None:
    assert list(split("他说：“你好。”然后走了！Dr. Smith paid $3.50. He left.\nA line\nthat goes on.")) == [
        "他说：“你好。”",
        "然后走了！",
        "Dr. Smith paid $3.50.",
        "He left.",
        "A line that goes on.",
    ]


def test_a_short_text_comes_back_as_it_is() -> None:
    result = summary(ENGLISH + "\n", max_length=5000)
    assert (result["summary"], result["sentence_count"]) == (ENGLISH + "\n", 6)


def test_a_blank_text_has_an_empty_summary() -> None:
    assert summary(" \n\t" * 300) == {"summary": "", "language": "en", "sentence_count": 0, "original_length": 900, "summary_length": 0}


def test_mixed_text_is_read_in_the_language_it_has_more_of() -> None:
    assert summary(CHINESE + ENGLISH[:110], max_length=60)["language"] == "zh"
    assert summary(ENGLISH + CHINESE[:20], max_length=60)["language"] == "en"
    assert summary(ENGLISH, max_length=60, language="zh")["language"] == "zh"


@pytest.mark.parametrize(
    "text",
    [
        "a" * 900,
        "一" * 900,
        "。" * 900,
        "😀" * 900,
        "Hi. " * 400,
        "\n".join("*" * n for n in range(1, 150)),
        "\x00" * 600,
        "word " * 20_000,
        "A. B. C. " * 2000,
    ],
)
def test_text_without_proper_sentences_is_summarized_within_the_length(text: str) -> None:
    assert summary(text)["summary"]
    assert summary(text, max_length=20)["summary"]


def test_a_long_text_is_narrowed_down_first() -> None:
    text = "".join(f"第{number}章讲述第{number * 7}号实验的结果，{CHINESE[:40]}" for number in range(1500))
    result = summary(text, max_length=500)
    assert result["sentence_count"] > 3


@pytest.mark.parametrize(
    "params", [{}, {"text": ""}, {"text": "a" * 500_001}, {"text": "a", "max_length": 19}, {"text": "a", "language": "fr"}]
)
def test_params_outside_the_schema_are_refused(params: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        convert(params, summarize.Params)
