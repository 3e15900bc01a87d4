"""`POST /search_tools` over the shipped catalog: the details, the number and the choice of tools."""

import pytest_asyncio
from pydantic import JsonValue

from tests.api.conftest import COMPRESS, House
from tests.api.shipped import stock
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import LocalSource, RemoteSource


@pytest_asyncio.fixture
async def shop(house: House) -> House:
    """The shipped catalog with a remote tool, and a tool of a namespace."""
    await stock(house)
    await house.registry.register(
        ToolManifest(tool_id="rates", name="Rates", category="finance"), (RemoteSource(remote_url="http://a.example"),)
    )
    await house.registry.register(COMPRESS.model_copy(update={"tool_id": "acme:shrink"}), (LocalSource(host_dir="tools/x"),))
    return house


async def ids(house: House, **wanted: JsonValue) -> list[str]:
    answer = await house.http.post("/search_tools", json=wanted)
    assert answer.status_code == 200, answer.text
    return [tool["tool_id"] for tool in answer.json()["tools"]]


async def test_filters_leave_tools_that_are_so_and_go_together(shop: House) -> None:
    pictures = ["acme:shrink", "image_compress_api", "image_stitcher"]
    assert await ids(shop, category="cv") == pictures
    assert await ids(shop, backend_runtime="remote") == ["rates"]
    assert await ids(shop, tag="图片") == pictures
    assert await ids(shop, group="image_pipeline") == ["image_compress_api", "image_stitcher"]
    assert await ids(shop, namespace="acme") == ["acme:shrink"]
    assert await ids(shop, keyword="拼接图片", category="cv", group="image_pipeline") == ["image_stitcher", "image_compress_api"]
    assert await ids(shop, keyword="拼接图片", category="finance") == []
    assert "acme:shrink" not in await ids(shop, keyword="图片", namespace="")


async def test_a_limit_keeps_the_best_and_the_total(shop: House) -> None:
    whole = (await shop.http.post("/search_tools", json={"keyword": "压缩图片"})).json()
    first = (await shop.http.post("/search_tools", json={"keyword": "压缩图片", "limit": 1})).json()
    assert (first["total"], first["tools"]) == (whole["total"], whole["tools"][:1])
    assert whole["total"] > 1
    for limit in (0, 1_001, "3", 1.5):
        refused = await shop.http.post("/search_tools", json={"limit": limit})
        assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "limit")


async def test_a_compact_answer_has_what_a_choice_needs(shop: House) -> None:
    answer = (await shop.http.post("/search_tools", json={"keyword": "image_compress_api", "limit": 1, "detail": "compact"})).json()
    (tool,) = answer["tools"]
    assert {*tool} == {"tool_id", "name", "description", "category", "params", "external_source"}
    assert (tool["tool_id"], tool["params"][0]) == ("image_compress_api", "image_path")
    assert all(param.endswith("?") for param in tool["params"][1:])
    assert (await shop.http.post("/search_tools", json={"detail": "tiny"})).json()["errors"][0]["field"] == "detail"


async def test_exact_ids_and_names_come_first(shop: House) -> None:
    for name in ("browser_stop", "BROWSER_STOP", "停止浏览器 Stop a browser"):
        assert (await ids(shop, keyword=name))[0] == "browser_stop"
