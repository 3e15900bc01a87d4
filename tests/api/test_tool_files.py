"""The schema of tool files, and listings by id and tag."""

import pytest

from tests.api.conftest import House
from toolagent.contracts.manifest import ToolManifest
from toolagent.core.catalog.tool_files import tool_file_schema


async def test_the_schema_of_tool_files_is_published(stocked: House) -> None:
    answer = await stocked.http.get("/schemas/tool.json")
    assert (answer.status_code, answer.json()) == (200, tool_file_schema())
    assert {"toolId", "displayName", "description", "version", "handler"} == set(answer.json()["required"])


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"namespace": "acme"}, {"acme:one", "acme:two"}),
        ({"namespace": "acme", "tag": "red"}, {"acme:one"}),
        ({"tag": "red"}, {"acme:one", "other:one"}),
        ({"namespace": "acm"}, set[str]()),
    ],
)
async def test_tools_are_listed_and_found_by_namespace_and_tag(stocked: House, query: dict[str, str], found: set[str]) -> None:
    for tool_id, tags in (("acme:one", ("red",)), ("acme:two", ("blue",)), ("other:one", ("red",))):
        await stocked.registry.register(ToolManifest(tool_id=tool_id, name="N", tags=tags))
    listed = (await stocked.http.get("/tools", params=query)).json()
    assert {tool["tool_id"] for tool in listed["tools"]} == found
    assert sum(one["tool_count"] for one in listed["backend_runtimes"]) == len(found)
    searched = (await stocked.http.post("/search_tools", json=query)).json()
    assert {tool["tool_id"] for tool in searched["tools"]} == found


async def test_an_empty_namespace_means_ids_without_one(stocked: House) -> None:
    await stocked.registry.register(ToolManifest(tool_id="acme:one", name="N"))
    listed = (await stocked.http.get("/tools", params={"namespace": ""})).json()
    assert {tool["tool_id"] for tool in listed["tools"]} == {"echo", "image_compress_api", "weather"}
