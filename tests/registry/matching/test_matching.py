"""The matching of tools over the shipped catalog and over changes of it."""

import asyncio
import json

import pytest
import pytest_asyncio

from engine.registry.matching.matching import Matching
from engine.registry.registry import ToolRegistry
from engine.runtimes.builtin import builtin_tools, entries
from engine.runtimes.builtin.options import BuiltinOptions
from engine.store.catalog_state import CatalogState
from engine.store.database import Database
from engine.store.groups import GroupTable
from engine.store.tools import ToolTable
from tests.conftest import ROOT
from tests.parts import tool_registry
from toolagent.contracts.backend_runtimes import BackendRuntime
from toolagent.contracts.groups import ToolGroup
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.matching import MatchKind
from toolagent.contracts.sources import LocalSource, RemoteSource

STITCH = ToolManifest(
    tool_id="image_stitcher",
    name="图片拼接 Image stitcher",
    description="把多张图片拼成一张。Joins pictures into one.",
    category="cv",
    tags=("image",),
    group_ids=("image_pipeline",),
)
SUMMARY = ToolManifest(tool_id="shop:text_summary", name="Summary", description="Shortens long articles.", category="nlp")
WEATHER = ToolManifest(
    tool_id="weather",
    name="天气查询",
    description="返回城市的气温。",
    input_schema={"type": "object", "properties": {"humidity": {"type": "boolean", "description": "whether moisture is told too"}}},
)
LOCAL, REMOTE = LocalSource(host_dir="tools/x"), RemoteSource(remote_url="https://api.example.com", remote_path="/")


@pytest_asyncio.fixture
async def registry(database: Database) -> ToolRegistry:
    registry = tool_registry(database)
    for tool, source in ((STITCH, LOCAL), (SUMMARY, LOCAL), (WEATHER, REMOTE)):
        await registry.register(tool, (source,))
    groups = json.loads((ROOT / "data/groups.json").read_text("utf-8"))["groups"]
    await GroupTable(database).replace([ToolGroup.model_validate(group) for group in groups])
    return registry


@pytest.fixture
def matching(database: Database, registry: ToolRegistry) -> Matching:
    return Matching(ToolTable(database), GroupTable(database), CatalogState(database))


async def ids(matching: Matching, keyword: str, **filters: object) -> list[str]:
    return [entry.manifest.tool_id for entry in await matching.search_tools(keyword, **filters)]  # pyright: ignore[reportArgumentType] - each as its test writes it


@pytest.mark.parametrize("query", ["weather", "WEATHER", "天气查询", " weather "])
async def test_an_id_or_a_name_is_a_direct_match(matching: Matching, query: str) -> None:
    match = await matching.match(query)
    assert (match.kind, [tool.tool_id for tool in match.tools]) == (MatchKind.DIRECT, ["weather"])


async def test_a_named_trigger_comes_before_what_is_similar(matching: Matching, registry: ToolRegistry) -> None:
    for entry in entries(builtin_tools(BuiltinOptions())):
        await registry.register(entry.manifest, entry.sources)
    for query in ("comfyui_load_image", "LoadImage", "我想用 ComfyUI 节点处理图片", "run a comfyui workflow on this image"):
        match = await matching.match(query)
        assert (query, match.kind, match.tools) == (query, MatchKind.COMPOSITE, ())
        assert match.composite is not None
        assert [tool.tool_id for tool in match.composite.base_tools] == [
            "launch_comfy_env",
            "runcomfy_workflow_executor",
            "runcomfy_stop_env",
        ]
    assert match.composite is not None
    answer = match.composite.model_dump(mode="json")
    assert answer["status"] == "composite_tool"
    assert {*answer["base_tools"][0]} == {"tool_id", "name", "description", "usage"}
    assert {*answer["workflow_example"]} == {"description", "steps", "workflow_json"}
    assert "server_id" in answer["base_tools"][1]["usage"]
    assert (await matching.get_base_tools("runcomfy_lifecycle"))[0].tool_id == "launch_comfy_env"


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("compress this screenshot", "shrink"),
        ("把网页链接做成二维码", "qr"),
        ("shorten the text of a web page", "shop:text_summary"),
        ("把网页截图压缩一下", "shrink"),
        ("take a screenshot of a web page", "browser_session"),
        ("用浏览器打开这个网页", "browser_session"),
        ("screenshot", "browser_session"),
    ],
)
async def test_a_trigger_that_is_named_besides_is_not_what_is_needed(
    matching: Matching, registry: ToolRegistry, query: str, found: str
) -> None:
    for tool_id, description in (
        ("shrink", "Compress pictures. 压缩图片。"),
        ("qr", "生成二维码。"),
        ("browser_screenshot", "Takes a screenshot of a web page, with its text. 网页截图,保存为图片。"),
        ("browser_launch", "启动浏览器,打开网页。Launches a browser."),
    ):
        await registry.register(ToolManifest(tool_id=tool_id, name=tool_id, description=description), (LOCAL,))
    match = await matching.match(query)
    assert (match.composite.group_id if match.composite else match.tools[0].tool_id) == found


async def test_a_verb_that_some_shipped_tool_says_too_takes_nothing_from_the_group_that_is_named(
    matching: Matching, registry: ToolRegistry
) -> None:
    for entry in entries(builtin_tools(BuiltinOptions())):
        await registry.register(entry.manifest, entry.sources)
    for tool in json.loads((ROOT / "data/registry.json").read_text("utf-8"))["tools"]:
        await registry.register(ToolManifest.model_validate(tool), (LOCAL,))
    for query in (
        "start a browser session",
        "run a headless browser",
        "Start Chromium and take a screenshot of example.com",
        "start the browser and open a page",
        "截图这个网页,将图片发给我",
        "把网页打开\uff0c截图",
        "把浏览器启动",
    ):
        match = await matching.match(query)
        assert (query, match.composite and match.composite.group_id) == (query, "browser_session")
    for query, tool_id in (
        ("summarize a web page", "text_summarizer_api"),
        ("Please summarize the web page", "text_summarizer_api"),
        ("把网页截图、图片压缩一下", "image_compress_api"),
    ):
        match = await matching.match(query)
        assert (query, match.composite is None and match.tools[0].tool_id) == (query, tool_id)


async def test_a_trigger_within_another_word_is_not_named(matching: Matching) -> None:
    assert await matching.detect_composite_tool("a comfyuish chair") is None
    assert await matching.detect_composite_tool("LoadImage") is None, "none of its tools is there"
    assert await matching.get_base_tools("nothing") == ()


async def test_what_is_neither_is_found_by_its_words_or_not_at_all(matching: Matching) -> None:
    match = await matching.match("shorten an article")
    assert (match.kind, match.tools[0].tool_id) == (MatchKind.FUZZY, "shop:text_summary")
    assert (await matching.match("zebra")).kind is MatchKind.NONE


@pytest.mark.parametrize(
    ("keyword", "found"),
    [
        ("moisture", "weather"),
        ("humidity", "weather"),
        ("pictures", "image_stitcher"),
        ("summ", "shop:text_summary"),
        ("wether", "weather"),
        ("拼", "image_stitcher"),
    ],
)
async def test_params_other_forms_beginnings_and_single_signs_find(matching: Matching, keyword: str, found: str) -> None:
    assert (await ids(matching, keyword))[0] == found


async def test_filters_leave_what_is_asked_for(matching: Matching) -> None:
    assert await ids(matching, "", backend=BackendRuntime.REMOTE) == ["weather"]
    assert await ids(matching, "图片", category="nlp") == []
    assert await ids(matching, "图片", tag="image", group="image_pipeline") == ["image_stitcher"]
    assert await ids(matching, "", limit=2) == ["image_stitcher", "shop:text_summary"]


async def test_a_change_of_the_catalog_is_found_and_what_went_is_not(matching: Matching, registry: ToolRegistry) -> None:
    assert await ids(matching, "tuning of pianos") == []
    await registry.register(ToolManifest(tool_id="grand", name="Piano tuner", description="Tunes pianos."), (LOCAL,))
    assert await ids(matching, "tuning of pianos") == ["grand"]
    await registry.register(ToolManifest(tool_id="grand", name="Cells", description="Rows of spreadsheets.", version="2.0.0"), (LOCAL,))
    assert await ids(matching, "tuning of pianos") == []
    await registry.destroy("grand")
    assert (await ids(matching, "spreadsheet"), (await matching.match("grand")).kind) == ([], MatchKind.NONE)


async def test_who_comes_while_the_index_is_made_waits_and_who_leaves_disturbs_nobody(matching: Matching) -> None:
    first = asyncio.create_task(ids(matching, "weather"))
    others = [asyncio.create_task(ids(matching, "weather")) for _ in range(8)]
    await asyncio.sleep(0)
    first.cancel()
    assert {next(iter(found)) for found in await asyncio.gather(*others)} == {"weather"}
