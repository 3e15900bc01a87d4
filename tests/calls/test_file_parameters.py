"""Files on their way to a tool and back."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.calls.file_parameters import CallFolder, FileRefused
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import JsonSchema, ToolManifest

if TYPE_CHECKING:
    from tests.calls.conftest import Desk

SCHEMA: JsonSchema = {"properties": {"file": {"type": "string", "format": "file-path"}, "text": {"type": "string"}}}
MANIFEST = ToolManifest(tool_id="t", name="T", input_schema=SCHEMA, output_schema=SCHEMA)


async def content() -> AsyncIterator[bytes]:
    yield b"content"


async def test_a_file_id_becomes_the_path_of_a_copy_and_a_path_stays_what_it_is(desk: "Desk", tmp_path: Path) -> None:
    stored = await desk.files.put(content(), "a.txt")
    (desk.root / "b.txt").write_bytes(b"b")
    async with CallFolder(tmp_path / "calls", "call-1", MANIFEST) as folder:
        by_id = await desk.parameters.resolve(SCHEMA, {"file": stored.file_id, "text": stored.file_id}, folder)
        by_path = await desk.parameters.resolve(SCHEMA, {"file": "b.txt"}, folder)
        copy = Path(str(by_id["file"]))
        assert (copy.name, await asyncio.to_thread(copy.read_bytes)) == ("a.txt", b"content")
        assert by_id["text"] == stored.file_id
        assert by_path == {"file": str(desk.root / "b.txt")}
    assert not (tmp_path / "calls" / "call-1").exists()


async def test_an_output_file_becomes_a_file_id(desk: "Desk", tmp_path: Path) -> None:
    async with CallFolder(tmp_path / "calls", "call-1", MANIFEST) as folder:
        (folder.outputs / "made.txt").write_bytes(b"made")
        output = await desk.parameters.take_in(SCHEMA, {"file": str(folder.outputs / "made.txt")}, folder)
    assert isinstance(output, dict)
    stored = await desk.files.get(str(output["file"]))
    assert stored is not None
    assert (stored.name, [piece async for piece in desk.files.read(stored)]) == ("made.txt", [b"made"])


@pytest.mark.parametrize(
    ("name", "error_type"),
    [
        ("/etc/passwd", ErrorType.SECURITY_ERROR),
        ("missing.txt", ErrorType.OUTPUT_VALIDATION_ERROR),
        ("big.txt", ErrorType.OUTPUT_VALIDATION_ERROR),
    ],
)
async def test_a_tool_may_only_hand_out_what_it_made(desk: "Desk", tmp_path: Path, name: str, error_type: ErrorType) -> None:
    async with CallFolder(tmp_path / "calls", "call-1", MANIFEST) as folder:
        (folder.outputs / "big.txt").write_bytes(b"x" * 1001)
        with pytest.raises(FileRefused) as refusal:
            await desk.parameters.take_in(SCHEMA, {"file": name}, folder)
    assert refusal.value.error.type is error_type


async def test_a_tool_that_has_nothing_to_do_with_files_gets_no_folder(tmp_path: Path) -> None:
    async with CallFolder(tmp_path / "calls", "call-1", ToolManifest(tool_id="t", name="T")) as folder:
        assert not folder.outputs.exists()


async def test_two_branches_that_name_one_place_name_one_file(desk: "Desk", tmp_path: Path) -> None:
    either: JsonSchema = {"properties": {"file": {"anyOf": [{"format": "file-path"}, {"type": "string", "format": "file-path"}]}}}
    (desk.root / "b.txt").write_bytes(b"b")
    async with CallFolder(tmp_path / "calls", "call-1", MANIFEST) as folder:
        assert await desk.parameters.resolve(either, {"file": "b.txt"}, folder) == {"file": str(desk.root / "b.txt")}
