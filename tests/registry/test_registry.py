"""The tool registry."""

import pytest

from engine.registry.registry import ToolRegistry
from engine.store.database import Database
from engine.store.routes import RouteTable
from tests.parts import tool_registry
from toolagent.contracts.backend_runtimes import BackendRuntime
from toolagent.contracts.manifest import ToolManifest, ToolStatus
from toolagent.contracts.routes import RunState, ToolRoute
from toolagent.contracts.sources import LocalSource, RemoteSource

COMPRESS = ToolManifest(
    tool_id="image_compress_api", name="图片压缩 API", category="cv", description="基于 PIL 的图片压缩", tags=("image",)
)
SUMMARY = ToolManifest(tool_id="text_summarizer", name="Summary", category="ai", description="Summarises text about images.")
HIDDEN = ToolManifest(tool_id="old", name="Old", category="cv", status=ToolStatus.INACTIVE)
LOCAL = LocalSource(host_dir="tools/local/image_compress_api")
REMOTE = RemoteSource(remote_url="https://api.example.com", remote_path="/v1/compress")


async def filled(database: Database) -> ToolRegistry:
    registry = tool_registry(database)
    for manifest in (COMPRESS, SUMMARY, HIDDEN):
        await registry.register(manifest, (LOCAL,))
    return registry


async def test_registered_tools_are_found_by_id_and_listed(database: Database) -> None:
    registry = await filled(database)
    assert await registry.get("image_compress_api") == COMPRESS
    assert await registry.get("nothing") is None
    assert [entry.manifest for entry in await registry.list_entries()] == [COMPRESS, HIDDEN, SUMMARY]


async def test_tools_are_counted_by_their_own_status_whatever_else_their_manifest_says(database: Database) -> None:
    registry = await filled(database)
    assert await registry.counts() == (3, 2)
    says_so = {"properties": {"a": {"const": {"status": "inactive"}}, "b": {"const": {"status": "active"}}}}
    for manifest in (COMPRESS, HIDDEN):
        await registry.register(manifest.model_copy(update={"input_schema": says_so}), (LOCAL,))
    assert await registry.counts() == (3, 2)
    await registry.destroy("text_summarizer")
    assert await registry.counts() == (2, 1)


async def test_the_backend_runtime_follows_from_the_source(database: Database) -> None:
    registry = tool_registry(database)
    assert (await registry.register(COMPRESS, (REMOTE,))).backend_runtime is BackendRuntime.REMOTE


async def test_destroy_says_what_it_cleaned_up(database: Database) -> None:
    registry, routes = await filled(database), RouteTable(database)
    await routes.save(ToolRoute(tool_id="old", host="h", state=RunState.RUNNING), "1.0.0")
    assert await registry.destroy("old") == {"versions": 1, "sources": 1, "routes": 1}
    assert await registry.destroy("old") == {"versions": 0, "sources": 0, "routes": 0}
    assert await routes.list_all() == ()
    assert await registry.get("old") is None


async def test_a_schema_that_hides_a_secret_is_not_registered(database: Database) -> None:
    registry = tool_registry(database)
    with pytest.raises(ValueError, match="cannot be followed"):
        await registry.register(COMPRESS.model_copy(update={"input_schema": {"contains": {"writeOnly": True}}}))
    assert await registry.get(COMPRESS.tool_id) is None
