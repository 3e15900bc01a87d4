"""The words of a text, read piece by piece, are those of the library's search over the whole text."""

import re

import pytest
import rjieba

from bench.search.catalog import labelled
from engine.registry.matching.evidence import words_in_common
from engine.registry.matching.ranking import Ranking
from engine.registry.matching.texts import Filters
from engine.registry.matching.words import cut, words_of
from toolagent.contracts.manifest import ToolManifest

WRITTEN = (
    "创建某个站点窑炉的许可证,记录日期、负责人和备注。",
    "将PDF转换为Word文档(支持B超、T恤、卡拉OK)",
    "LoadImage节点:load_image.v2-beta, C+ 和 50% 的 café/файл/ひらがな",
    "a‘b’c“d”【e】|f<g>=h`i`",
)


@pytest.mark.parametrize("text", [*WRITTEN, *(query.need for query in labelled())])
def test_pieces_of_a_text_have_the_words_of_the_whole(text: str) -> None:
    small = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", re.sub("[_:/.-]", " ", text)).lower()
    assert words_of(text) == [word for word in rjieba.cut_for_search(small) if word.isalnum()]


def test_a_cut_text_has_chinese_words_whole_and_the_others_as_they_are_written() -> None:
    assert cut("把LoadImage的许可证导出为PDF, now") == ["把", "LoadImage", "的", "许可证", "导出", "为", "PDF", "now"]


def test_a_word_after_an_acronym_is_one_of_its_own() -> None:
    assert words_of("NASATool HTMLToPDF loadImage APIs") == ["nasa", "tool", "html", "to", "pdf", "load", "image", "apis"]
    assert words_of("USDtoEUR HTMLtoPDF") == ["usd", "to", "eur", "html", "to", "pdf"]


@pytest.mark.parametrize(
    ("query", "found"),
    [("oauth", {"sign_in", "small"}), ("OAuth", {"sign_in", "small"}), ("qrcode", {"draw"}), ("QRCode", {"draw"}), ("QR code", {"draw"})],
)
def test_a_name_with_an_acronym_is_found_in_one_word_and_in_two(query: str, found: set[str]) -> None:
    said = {
        "sign_in": "GetOAuthToken.",
        "small": "Has oauth.",
        "draw": "Makes a QRCode.",
        "check": "Basic auth.",
        "format": "Lays code out.",
    }
    tools = {tool_id: ToolManifest(tool_id=tool_id, name=tool_id, description=text) for tool_id, text in said.items()}
    ranking = Ranking()
    ranking.change((), [*tools.values()])
    first = ranking.search(query, Filters())[: len(found)]
    assert {*first} == found
    assert words_in_common(query, tools[first[0]]) != ()


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("compile C++", "cpp"),
        ("用C++写的程序", "cpp"),
        ("cpp compiler", "cpp"),
        ("C# formatter", "csharp"),
        ("c#", "csharp"),
        ("asp.NET pages", "dotnet"),
        ("something for .net", "dotnet"),
        ("dotnet", "dotnet"),
        ("a C program", "c"),
        ("look up example.net", "domains"),
        ("call #support", "support"),
    ],
)
def test_signs_that_are_part_of_a_word_find(query: str, found: str) -> None:
    ranking = Ranking()
    said = {
        "c": "Compiles a C program.",
        "cpp": "Compiles C++17.",
        "csharp": "Lays out C# files.",
        "dotnet": "Packs a .NET library.",
        "domains": "Looks up names below .com and .org, such as example.net.",
        "support": "Calls the channel #support.",
        "sharp": "Makes a picture sharp, one net of lines at a time.",
    }
    ranking.change((), [ToolManifest(tool_id=f"tool_{at}", name=f"Tool {at}", description=text) for at, text in enumerate(said.values())])
    ids = [*said]
    assert [ids[int(tool_id.removeprefix("tool_"))] for tool_id in ranking.search(query, Filters())][:1] == [found]


def test_a_name_is_forgotten_with_its_last_tool() -> None:
    ranking = Ranking()
    one, other = (ToolManifest(tool_id=tool_id, name="Same Name", description="") for tool_id in ("one", "other"))
    ranking.change((), [one, other])
    ranking.change((), [one.model_copy(update={"name": "Another"})])
    assert (ranking.named("same name"), ranking.named("another")) == (["other"], ["one"])
    ranking.change(["other"], [])
    assert (ranking.named("same name"), ranking.counts().total) == ([], 1)
