"""Archives of a tool's project."""

import io
import os
import py_compile
import sys
import tarfile
from pathlib import Path
from py_compile import PycInvalidationMode

import pytest
from pydantic import JsonValue

from engine.registry.archives import NotPackedError, ProjectArchives, packed
from engine.registry.stored_archives import StoredArchives
from engine.runtimes.failures import StartFailed
from engine.runtimes.projects import Projects
from engine.store.database import Database
from engine.store.tools import ToolTable
from tests.machine import read_as_its_owner
from tests.registry.importing import files_of, importer_of, write_catalog
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.sources import LocalSource, McpSource


def project(folder: Path) -> Path:
    (folder / "sub").mkdir(parents=True)
    (folder / "main.py").write_text("print(1)", "utf-8")
    (folder / "sub" / "other.py").write_text("print(2)", "utf-8")
    for left_out in (".venv", "__pycache__", ".git", "node_modules"):
        (folder / left_out).mkdir()
        (folder / left_out / "x").write_text("x", "utf-8")
    return folder


def test_an_archive_is_the_same_wherever_and_whenever_it_is_made(tmp_path: Path) -> None:
    first, second = project(tmp_path / "a"), project(tmp_path / "b")
    os.utime(second / "main.py", (1, 1))
    assert packed(first) == packed(second)
    with tarfile.open(fileobj=io.BytesIO(packed(first))) as archive:
        assert archive.getnames() == ["main.py", "sub/other.py"]
        assert {(member.mtime, member.uid, member.uname) for member in archive} == {(0, 0, "")}


def test_what_running_compiled_is_left_out_and_what_was_compiled_to_stay_is_not(tmp_path: Path) -> None:
    folder = project(tmp_path / "a")
    for name, mode in (("main.py", PycInvalidationMode.TIMESTAMP), ("sub/other.py", PycInvalidationMode.CHECKED_HASH)):
        py_compile.compile(str(folder / name), invalidation_mode=mode)
    (folder / "sub/pipe.pyc").symlink_to("nowhere")
    with tarfile.open(fileobj=io.BytesIO(packed(folder))) as archive:
        assert archive.getnames() == ["main.py", f"sub/__pycache__/other.{sys.implementation.cache_tag}.pyc", "sub/other.py"]


def test_a_link_that_leads_out_is_refused_and_one_that_stays_becomes_its_file(tmp_path: Path) -> None:
    folder = project(tmp_path / "a")
    (folder / "inside.py").symlink_to("main.py")
    with tarfile.open(fileobj=io.BytesIO(packed(folder))) as archive:
        assert all(member.isreg() for member in archive)
    (folder / "outside").symlink_to("/etc/passwd")
    with pytest.raises(NotPackedError):
        packed(folder)


@pytest.mark.parametrize("target", ["link", "other", "nothing", "x" * 300])
def test_a_link_that_leads_nowhere_or_in_a_circle_is_refused_by_name(tmp_path: Path, target: str) -> None:
    folder = project(tmp_path / "a")
    (folder / "link").symlink_to(target)
    (folder / "other").symlink_to("link")
    with pytest.raises(NotPackedError, match=r"link|other"):
        packed(folder)


@pytest.mark.parametrize("broken", ["in_it", "itself", "name"])
async def test_a_project_that_cannot_be_packed_is_a_fault_of_its_own_and_the_other_tools_are_there(
    database: Database, tmp_path: Path, broken: str
) -> None:
    project(tmp_path / "data" / "good")
    project(tmp_path / "data" / "in_it")
    (tmp_path / "data" / "in_it" / "loop.py").symlink_to("loop.py")
    (tmp_path / "data" / "itself").symlink_to("itself")
    host_dirs = {"a": "x" * 300 if broken == "name" else broken, "b": "good"}
    sources: dict[str, JsonValue] = {tool: [{"type": "local", "host_dir": folder}] for tool, folder in host_dirs.items()}
    tools: list[JsonValue] = [{"tool_id": tool, "name": tool} for tool in host_dirs]
    write_catalog(tmp_path / "data", {"registry.json": {"tools": tools}, "sources.json": {"sources": sources}})
    faults = await importer_of(database, tmp_path).run(tmp_path / "data", ())
    assert [(fault.file, fault.field) for fault in faults] == [("sources.json", "$.sources.a")]
    assert host_dirs["a"] in faults[0].reason
    found = {entry.manifest.tool_id: entry.sources[0] for entry in await ToolTable(database).list_active_versions()}
    assert {tool: isinstance(source, LocalSource) and source.content is not None for tool, source in found.items()} == {
        "a": False,
        "b": True,
    }


async def test_the_project_of_an_mcp_server_is_packed_and_a_server_elsewhere_has_none(database: Database, tmp_path: Path) -> None:
    project(tmp_path / "data" / "server")
    sources: dict[str, JsonValue] = {
        "here": [{"type": "mcp", "tool_name": "act", "host_dir": "server", "process": "server"}],
        "there": [{"type": "mcp", "tool_name": "act", "url": "https://example.com/mcp"}],
    }
    tools: list[JsonValue] = [{"tool_id": tool, "name": tool} for tool in sources]
    write_catalog(tmp_path / "data", {"registry.json": {"tools": tools}, "sources.json": {"sources": sources}})
    assert [*await importer_of(database, tmp_path).run(tmp_path / "data", ())] == []
    found = {entry.manifest.tool_id: entry.sources[0] for entry in await ToolTable(database).list_active_versions()}
    has_content = {tool: isinstance(source, McpSource) and source.content is not None for tool, source in found.items()}
    assert has_content == {"here": True, "there": False}
    assert [entry.manifest.backend_runtime for entry in await ToolTable(database).list_active_versions()] == ["local", "remote"]


def test_a_part_of_a_folder_that_cannot_be_read_is_not_left_out_in_silence(tmp_path: Path) -> None:
    folder = project(tmp_path / "a")
    (folder / "sub").chmod(0)
    try:
        with read_as_its_owner(), pytest.raises(NotPackedError):
            packed(folder)
    finally:
        (folder / "sub").chmod(0o755)


def test_a_folder_that_is_too_large_is_refused(tmp_path: Path) -> None:
    folder = project(tmp_path / "a")
    with (folder / "large").open("wb") as large:
        large.truncate(49 * 1_048_576)
    with pytest.raises(NotPackedError):
        packed(folder)


async def test_a_folder_is_packed_again_when_it_changed(database: Database, tmp_path: Path) -> None:
    folder, archives = project(tmp_path / "a"), ProjectArchives(files_of(database, tmp_path))
    first = await archives.content_of(folder, "ns:a")
    assert await archives.content_of(folder, "ns:a") == first
    (folder / "main.py").write_text("print(3) # changed", "utf-8")
    assert await archives.content_of(folder, "ns:a") != first
    assert await archives.content_of(tmp_path / "nothing", "ns:a") is None


async def test_a_damaged_archive_is_made_again_of_the_folder_that_is_there(database: Database, tmp_path: Path) -> None:
    folder, files = project(tmp_path / "data" / "tool"), files_of(database, tmp_path)
    archives = ProjectArchives(files)
    content = await archives.content_of(folder, "ns:a")
    assert content is not None
    projects = Projects(tmp_path / "projects", StoredArchives(files, archives))
    damage(tmp_path)
    unpacked = await projects.folder_of(content, "ns:a", lambda _: None)
    assert (unpacked / "main.py").read_text("utf-8") == "print(1)"
    # Without the folder as it was then, the start says what to do.
    damage(tmp_path)
    (folder / "main.py").write_text("print(3)", "utf-8")
    with pytest.raises(StartFailed) as failure:
        await Projects(tmp_path / "others", StoredArchives(files, archives)).folder_of(content, "ns:a", lambda _: None)
    assert (failure.value.error_type, content in failure.value.message) == (ErrorType.UNAVAILABLE, True)


async def test_an_import_makes_a_damaged_archive_again_whether_or_not_its_file_names_it(database: Database, tmp_path: Path) -> None:
    project(tmp_path / "data" / "good")
    source: dict[str, JsonValue] = {"type": "local", "host_dir": "good"}
    for _ in range(2):
        write_catalog(
            tmp_path / "data", {"registry.json": {"tools": [{"tool_id": "a", "name": "a"}]}, "sources.json": {"sources": {"a": [source]}}}
        )
        await importer_of(database, tmp_path).run(tmp_path / "data", ())
        damage(tmp_path, b"")
        assert await importer_of(database, tmp_path).run(tmp_path / "data", ()) == ()
        (entry,) = await ToolTable(database).list_active_versions()
        assert isinstance(entry.sources[0], LocalSource)
        files, content = files_of(database, tmp_path), entry.sources[0].content
        file = await files.get(content or "")
        assert file is not None
        assert b"".join([piece async for piece in files.read(file)])
        source["content"] = content


def damage(tmp_path: Path, content: bytes = b"no archive at all") -> None:
    (kept,) = (tmp_path / "content").glob("??/*")
    kept.write_bytes(content)
