"""Imported files are exported unchanged."""

import asyncio
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from engine.registry.export import CatalogExport
from engine.store.database import Database
from tests.parts import tool_registry
from tests.registry.importing import importer_of, write_catalog
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import ScriptLanguage, ScriptSource

Documents = dict[str, dict[str, JsonValue]]
DATA = Path(__file__).parent.parent.parent / "data"

# Keys and texts that no field is called like, and that no secret is called like.
_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12).filter(lambda text: "@" not in text)
_NAME = st.from_regex(r"[a-z][a-z0-9._-]{0,11}", fullmatch=True)
_FOREIGN = st.dictionaries(
    st.from_regex(r"x-[a-z]{1,6}", fullmatch=True),
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | _TEXT,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.from_regex(r"k[0-9]", fullmatch=True), inner, max_size=3),
        max_leaves=5,
    ),
    max_size=2,
)
_IDS = st.lists(st.from_regex(r"([a-z]{1,3}:)?[a-z][a-z0-9_-]{0,8}", fullmatch=True), unique=True, max_size=5)
_SCHEMA = st.sampled_from(
    [
        {},
        {"type": "object", "properties": {"image_path": {"type": "string"}}, "required": ["image_path"]},
        {"properties": {"p": {"$ref": "#/$defs/file"}}, "$defs": {"file": {"format": "file-path"}}, "x-note": 1},
    ]
)


def _some(required: dict[str, st.SearchStrategy[Any]], optional: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    fields = st.fixed_dictionaries(required, optional=optional)
    return st.tuples(fields, _FOREIGN).flatmap(lambda pair: st.permutations([*{**pair[0], **pair[1]}.items()]).map(dict))


def _tool(tool_id: str) -> st.SearchStrategy[Any]:
    return _some(
        {"tool_id": st.just(tool_id), "name": _TEXT.filter(bool)},
        {
            "category": st.sampled_from(["cv", "custom"]),
            "description": _TEXT,
            "version": st.sampled_from(["1.0.0", "2.1.0-rc.1"]),
            "backend_runtime": st.sampled_from(["local", "docker", "remote"]),
            "group_ids": st.just(["g"]),
            "tool_slug_ids": st.just(["comfyui"]),
            "input_schema": _SCHEMA,
            "output_schema": _SCHEMA,
            "stream_support": st.booleans(),
            "status": st.sampled_from(["active", "inactive", "staging", "building"]),
            "timeout_s": st.sampled_from([1, 2.5]),
            "securityContext": _some({}, {"fileAccess": _some({}, {"allowRead": st.just(["/x"])})}),
            "examples": st.lists(_some({}, {"description": _TEXT, "input": st.just({"a": 1})}), max_size=2),
        },
    )


_SOURCE = st.one_of(
    _some(
        {"type": st.just("local"), "host_dir": st.just("tools/local/x")},
        {"endpoint_path": st.just("/"), "http_method": st.just("POST"), "internal_port": st.integers(0, 65535)},
    ),
    _some({"type": st.just("docker")}, {"container_id": _NAME, "image": _NAME, "internal_port": st.just(8080)}),
    _some(
        {"type": st.just("remote"), "remote_url": st.just("https://api.example.com")},
        {"remote_path": st.just("/v1"), "remote_api_key": st.sampled_from(["secret:KEY", "", None]), "auth_scheme": _TEXT},
    ),
)


@st.composite
def catalogs(draw: st.DrawFn) -> Documents:
    ids = draw(_IDS)
    with_sources = draw(st.permutations(ids))[: draw(st.integers(0, len(ids)))]
    made: Documents = {
        "registry.json": {**draw(_FOREIGN), "tools": [draw(_tool(tool_id)) for tool_id in ids]},
        "sources.json": {**draw(_FOREIGN), "sources": {tool_id: draw(st.lists(_SOURCE, max_size=3)) for tool_id in with_sources}},
    }
    if draw(st.booleans()):
        made["registry.json"]["version"] = "2.0"
    if draw(st.booleans()):
        group = _some({"group_id": st.just("g"), "name": st.just("组")}, {"category": _TEXT, "tool_ids": st.just([*ids])})
        made["groups.json"] = {**draw(_FOREIGN), "groups": [draw(group)]}
    if draw(st.booleans()):
        mapping = st.just({"8080": 9001})
        container = _some(
            {"container_id": st.just("25e884ca6cec..."), "tool_id": st.just("gpu_tool"), "image": st.just("ubuntu:22.04")},
            {
                "port_mapping": mapping,
                "status": st.just("running"),
                "created_at": st.just("2026-03-20T07:31:50Z"),
                "gpu_count": st.just(-1),
            },
        )
        made["containers.json"] = {**draw(_FOREIGN), "containers": [draw(container)]}
    return made


def _ids_in(documents: Documents) -> list[JsonValue]:
    tools = documents["registry.json"]["tools"]
    return [tool["tool_id"] for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []


async def _round_trip(empty: Path, documents: Documents) -> tuple[Documents, Documents]:
    """The export, and the export after importing that into an empty database."""
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp))
    try:
        found: list[Documents] = []
        for name in ("first", "second"):
            await asyncio.to_thread(shutil.copyfile, empty, folder / f"{name}.db")
            database = Database(f"sqlite+aiosqlite:///{folder / f'{name}.db'}")
            await asyncio.to_thread(write_catalog, folder / name / "data", found[0] if found else documents)
            await importer_of(database, folder / name).run(folder / name / "data", ())
            found.append(await CatalogExport(database).documents())
            await database.close()
        return found[0], found[1]
    finally:
        await asyncio.to_thread(shutil.rmtree, folder)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(documents=catalogs())
def test_any_catalog_comes_back_equal_and_once_more(empty_database: Path, documents: Documents) -> None:
    once, twice = asyncio.run(_round_trip(empty_database, documents))
    assert once == documents
    assert [*once] == [name for name in ("registry.json", "sources.json", "groups.json", "containers.json") if name in documents]
    assert _ids_in(once) == _ids_in(documents)
    assert twice == once


async def test_the_shipped_catalog_comes_back_equal(empty_database: Path) -> None:
    files = [DATA / name for name in ("registry.json", "sources.json", "groups.json")]
    documents: Documents = {path.name: json.loads(await asyncio.to_thread(path.read_text, "utf-8")) for path in files}
    assert (await _round_trip(empty_database, documents))[0] == documents


SPECIFIED_0: Documents = {
    "registry.json": {
        "tools": [
            {
                "tool_id": "image_stitcher",
                "name": "图片拼接工具",
                "description": "将多张图片拼接成一张",
                "category": "cv",
                "backend_runtime": "local",
                "group_ids": [],
                "tool_slug_ids": ["comfyui"],
                "input_schema": {},
                "output_schema": {},
                "stream_support": False,
                "status": "active",
            }
        ]
    },
    "sources.json": {
        "sources": {
            "image_stitcher": [
                {"type": "local", "host_dir": "tools/local/image_stitcher", "endpoint_path": "/", "http_method": "POST", "internal_port": 0}
            ]
        }
    },
    "groups.json": {
        "groups": [
            {
                "group_id": "runcomfy_lifecycle",
                "name": "RunComfy 生命周期管理",
                "description": "云端 ComfyUI 环境的完整生命周期",
                "category": "remote",
                "tool_ids": ["launch_comfy_env", "runcomfy_workflow_executor", "runcomfy_stop_env"],
                "usage_order": ["launch_comfy_env", "runcomfy_workflow_executor", "runcomfy_stop_env"],
                "usage_example": "先 launch 获取 server_id,再 run 执行 workflow,最后 stop 释放资源",
            }
        ]
    },
}
SPECIFIED_1: Documents = {
    "registry.json": {
        "tools": [
            {
                "tool_id": "image_compress_api",
                "name": "图片压缩 API",
                "category": "cv",
                "description": "基于 PIL 的图片压缩",
                "input_schema": {},
                "output_schema": {},
                "stream_support": False,
                "status": "active",
            },
            {"tool_id": "gpu_tool", "name": "GPU"},
        ],
        "version": "2.0",
    },
    "sources.json": {
        "sources": {
            "image_compress_api": [
                {
                    "type": "local",
                    "host_dir": "tools/local/image_compress_api",
                    "endpoint_path": "/",
                    "http_method": "POST",
                    "internal_port": 0,
                },
                {
                    "type": "docker",
                    "container_id": "25e884ca6cec...",
                    "image": "ubuntu:22.04",
                    "internal_port": 8080,
                    "endpoint_path": "/api/compress",
                    "http_method": "POST",
                },
            ],
            "gpu_tool": [
                {"type": "docker", "container_id": "abc123...", "internal_port": 8080, "endpoint_path": "/api/run", "http_method": "POST"}
            ],
        }
    },
    "containers.json": {
        "containers": [
            {
                "container_id": "25e884ca6cecfa87e19ea737315a8773d...",
                "tool_id": "test_git_tool",
                "image": "ubuntu:22.04",
                "port_mapping": {"8080": 9001, "3306": 9002},
                "volumes": {"C:/staging/project": "/app"},
                "mem_limit": "1g",
                "nano_cpus": 1000000000,
                "use_gpu": False,
                "gpu_count": -1,
                "status": "running",
                "created_at": "2026-03-20T07:31:50.421101Z",
                "last_accessed": "2026-03-20T07:33:16.214642+00:00",
                "destroyed_at": None,
            }
        ]
    },
}


@pytest.mark.parametrize("documents", [SPECIFIED_0, SPECIFIED_1])
async def test_the_examples_of_the_specified_come_back_equal(empty_database: Path, documents: Documents) -> None:
    once, twice = await _round_trip(empty_database, documents)
    assert (once, twice) == (documents, documents)


async def test_what_changed_since_stands_over_what_the_file_said(database: Database, tmp_path: Path) -> None:
    tool: JsonValue = {"x-owner": "me", "tool_id": "a", "name": "A"}
    write_catalog(tmp_path / "data", {"registry.json": {"tools": [tool]}})
    await importer_of(database, tmp_path).run(tmp_path / "data", ())
    registry = tool_registry(database)
    await registry.deactivate("a", "1.0.0")
    await registry.register(ToolManifest(tool_id="z", name="Z", tags=("new",)))
    tools = (await CatalogExport(database).documents())["registry.json"]["tools"]
    assert isinstance(tools, list)
    assert tools[0] == {"x-owner": "me", "tool_id": "a", "name": "A", "status": "inactive"}
    assert isinstance(tools[1], dict)
    assert (tools[1]["tool_id"], tools[1]["tags"], tools[1]["status"]) == ("z", ["new"], "active")


async def test_what_was_registered_here_names_its_files_whatever_its_type(database: Database) -> None:
    content = f"file_{'0' * 32}"
    script = ScriptSource(script_path="a.py", language=ScriptLanguage.PYTHON, content=content)
    await tool_registry(database).register(ToolManifest(tool_id="a", name="A"), (script,))
    documents = await CatalogExport(database).documents()
    written: JsonValue = {"type": "script", "script_path": "a.py", "language": "python", "content": content}
    assert documents["sources.json"] == {"sources": {"a": [written]}}


async def test_other_versions_go_to_a_file_of_their_own_and_come_back(database: Database, empty_database: Path, tmp_path: Path) -> None:
    for version, note in (("1.0.0", "old"), ("2.0.0", "new")):
        tool: JsonValue = {"tool_id": "a", "name": "A", "version": version, "x-note": note}
        source: JsonValue = {"type": "remote", "remote_url": "http://127.0.0.1:1", "x-zone": note}
        write_catalog(tmp_path / "data", {"registry.json": {"tools": [tool]}, "sources.json": {"sources": {"a": [source]}}})
        await importer_of(database, tmp_path).run(tmp_path / "data", ())
    documents = await CatalogExport(database).documents()
    assert documents["versions.json"] == {
        "version": "1.0",
        "versions": {
            "a": [
                {
                    "tool_id": "a",
                    "name": "A",
                    "version": "1.0.0",
                    "x-note": "old",
                    "sources": [{"type": "remote", "remote_url": "http://127.0.0.1:1", "x-zone": "old"}],
                }
            ]
        },
    }
    once, twice = await _round_trip(empty_database, documents)
    assert (once, twice) == (documents, documents)
