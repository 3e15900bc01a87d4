"""Files in parameters and outputs."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.calls import file_parameters
from engine.calls.file_parameters import CallFolder, FileRefused
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.manifest import ToolManifest

if TYPE_CHECKING:
    from tests.calls.conftest import Desk, Removal

SCHEMA: JsonSchema = {"properties": {"file": {"type": "string", "format": "file-path"}, "text": {"type": "string"}}}
MANIFEST = ToolManifest(tool_id="t", name="T", input_schema=SCHEMA, output_schema=SCHEMA)


async def content() -> AsyncIterator[bytes]:
    yield b"content"


async def test_a_file_id_becomes_the_path_of_a_copy_and_a_path_too(desk: "Desk", tmp_path: Path) -> None:
    stored = await desk.files.put(content(), "a.txt")
    (desk.root / "b.txt").write_bytes(b"b")
    async with CallFolder(tmp_path / "calls", "call-1", MANIFEST) as folder:
        by_id = await desk.parameters.resolve(SCHEMA, {"file": stored.file_id, "text": stored.file_id}, folder)
        by_path = await desk.parameters.resolve(SCHEMA, {"file": "b.txt"}, folder)
        copy = Path(str(by_id["file"]))
        assert (copy.name, await asyncio.to_thread(copy.read_bytes)) == ("a.txt", b"content")
        assert by_id["text"] == stored.file_id
        other = Path(str(by_path["file"]))
        assert (other.name, await asyncio.to_thread(other.read_bytes)) == ("b.txt", b"b")
        assert other.is_relative_to(folder.inputs)
        assert [path.name for path in (tmp_path / "calls").iterdir() if path.name != "t"] == [folder.staged.name]
    assert [path.name for path in (tmp_path / "calls").rglob("*")] == ["t"]


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


async def test_two_branches_that_name_one_place_name_one_file(desk: "Desk", tmp_path: Path) -> None:
    either: JsonSchema = {"properties": {"file": {"anyOf": [{"format": "file-path"}, {"type": "string", "format": "file-path"}]}}}
    (desk.root / "b.txt").write_bytes(b"b")
    async with CallFolder(tmp_path / "calls", "call-1", MANIFEST) as folder:
        resolved = await desk.parameters.resolve(either, {"file": "b.txt"}, folder)
        assert Path(str(resolved["file"])).is_relative_to(folder.inputs)


def link(folder: CallFolder) -> str:
    (folder.outputs / "x").symlink_to("/etc/passwd")
    return "x"


def link_on_the_way(folder: CallFolder) -> str:
    (folder.outputs / "etc").symlink_to("/etc")
    return "etc/passwd"


def swapped_output_folder(folder: CallFolder) -> str:
    folder.outputs.rmdir()
    folder.outputs.symlink_to("/etc")
    return "passwd"


def swapped_call_folder(folder: CallFolder) -> str:
    call = folder.outputs.parent
    call.rename(call.with_name("moved"))
    call.symlink_to("/")
    (call.with_name("moved") / "out").rmdir()
    return str(folder.outputs.parent / "out")


def pipe(folder: CallFolder) -> str:
    os.mkfifo(folder.outputs / "pipe")
    return "pipe"


def the_folder_itself(_: CallFolder) -> str:
    return "."


def no_name(_: CallFolder) -> str:
    return "a\0b"


def climbing(_: CallFolder) -> str:
    return "../../../../secret.txt"


@pytest.mark.parametrize(
    ("arrange", "error_type"),
    [
        (link, ErrorType.SECURITY_ERROR),
        (link_on_the_way, ErrorType.SECURITY_ERROR),
        (swapped_output_folder, ErrorType.SECURITY_ERROR),
        (swapped_call_folder, ErrorType.SECURITY_ERROR),
        (climbing, ErrorType.SECURITY_ERROR),
        (the_folder_itself, ErrorType.SECURITY_ERROR),
        (pipe, ErrorType.OUTPUT_VALIDATION_ERROR),
        (no_name, ErrorType.OUTPUT_VALIDATION_ERROR),
    ],
)
async def test_what_is_no_plain_file_of_the_call_is_refused(
    desk: "Desk", tmp_path: Path, arrange: Callable[[CallFolder], str], error_type: ErrorType
) -> None:
    (tmp_path / "secret.txt").write_text("not the tool's")
    async with asyncio.timeout(20), CallFolder(tmp_path / "calls", "call-1", MANIFEST) as folder:
        with pytest.raises(FileRefused) as refusal:
            await desk.parameters.take_in(SCHEMA, {"file": arrange(folder)}, folder)
    assert refusal.value.error.type is error_type


@pytest.mark.parametrize("place", ["t/call-1", "t/call-1/out", "t/call-1/in", "t"])
async def test_a_folder_that_somebody_put_a_link_for_is_not_used(desk: "Desk", tmp_path: Path, place: str) -> None:
    victim, calls = tmp_path / "victim", tmp_path / "calls"
    victim.mkdir(mode=0o755)
    (desk.root / "b.txt").write_bytes(b"b")
    link = calls / place
    link.parent.mkdir(parents=True)
    link.symlink_to(victim)
    with pytest.raises(OSError, match=r"\[Errno"):
        async with CallFolder(calls, "call-1", MANIFEST) as folder:
            await desk.parameters.resolve(SCHEMA, {"file": "b.txt"}, folder)
    assert (list(victim.iterdir()), victim.stat().st_mode & 0o777) == ([], 0o755)


async def test_a_folder_is_removed_whole_however_often_that_is_cancelled(tmp_path: Path, removal: "Removal") -> None:
    async def open_and_close() -> None:
        async with CallFolder(tmp_path / "calls", "call-1", MANIFEST):
            pass

    call = asyncio.create_task(open_and_close())
    await asyncio.to_thread(removal.begins.wait, 10)
    for _ in range(2):
        call.cancel()
        await asyncio.sleep(0)
    removal.may_go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert [path.name for path in (tmp_path / "calls").rglob("*")] == ["t"]


def damage(folder: Path, sha256: str) -> None:
    (kept,) = folder.rglob(sha256)
    kept.write_bytes(b"c0ntent")


async def test_a_damaged_file_reaches_no_tool_and_its_call_says_what_to_do(desk: "Desk", tmp_path: Path) -> None:
    stored = await desk.files.put(content(), "a.txt")
    damage(tmp_path, stored.sha256)
    async with CallFolder(tmp_path / "calls", "call-1", MANIFEST) as folder:
        for _ in range(2):
            with pytest.raises(FileRefused) as refusal:
                await desk.parameters.resolve(SCHEMA, {"file": stored.file_id}, folder)
            assert refusal.value.error.type is ErrorType.UNAVAILABLE
            assert stored.file_id in refusal.value.error.message
        assert await desk.files.put(content(), "a.txt") == stored
        resolved = await desk.parameters.resolve(SCHEMA, {"file": stored.file_id}, folder)
        assert await asyncio.to_thread(Path(str(resolved["file"])).read_bytes) == b"content"


async def test_files_are_looked_for_in_many_values_beside_the_event_loop(desk: "Desk", monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []

    def seen(*_: object) -> Iterator[tuple[str, str]]:
        threads.append(threading.current_thread())
        yield from ()

    monkeypatch.setattr(file_parameters, "values_of_format", seen)
    for many in (False, True):
        await desk.parameters.check(SCHEMA, {f"x{number}": "" for number in range(5_000 if many else 5)})
        assert (threads.pop() is not threading.current_thread()) == many
