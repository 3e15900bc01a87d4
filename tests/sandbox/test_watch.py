"""The watch sees what the kernel does not count, also what hides from it."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from engine.runtimes.sandbox.removal import remove
from engine.runtimes.sandbox.watch import Watch
from toolagent.contracts.sandbox import SandboxLimits

MIB = 1024 * 1024


async def over(folder: Path, **limits: int) -> Watch:
    """A watch that has ended the run of this process."""
    ended = asyncio.Event()
    watch = Watch([folder], SandboxLimits(**limits), memory="memory_bytes" in limits, kill=ended.set)  # pyright: ignore[reportArgumentType] - names of fields
    watch.begin(os.getpid)
    try:
        async with asyncio.timeout(20):
            await ended.wait()
    finally:
        await watch.end()
    return watch


async def test_files_are_counted_by_what_they_take(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(3 * MIB))
    watch = await over(tmp_path, disk_bytes=2 * MIB)
    assert (watch.disk_full, watch.out_of_memory) == (True, False)


async def test_empty_files_take_room_too(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / str(number)).touch()
    assert (await over(tmp_path, disk_bytes=MIB)).disk_full


async def test_deleted_files_that_are_open_are_counted(tmp_path: Path) -> None:
    with (tmp_path / "a").open("wb", buffering=0) as file:
        (tmp_path / "a").unlink()
        file.write(bytes(3 * MIB))
        assert (await over(tmp_path, disk_bytes=2 * MIB)).disk_full


async def test_folders_too_deep_to_be_counted_are_too_much(tmp_path: Path) -> None:
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(200):
        os.mkdir("d", dir_fd=here)
        deeper = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(here)
    assert (await over(tmp_path, disk_bytes=1024 * MIB)).disk_full


async def test_files_in_memory_without_a_name_count_as_memory(tmp_path: Path) -> None:
    fd = os.memfd_create("x")
    child = subprocess.Popen(["/bin/sleep", "1000"], pass_fds=[fd])  # noqa: ASYNC220 - a real one, at once
    try:
        os.write(fd, bytes(64 * MIB))
        assert (await over(tmp_path, memory_bytes=48 * MIB)).out_of_memory
    finally:
        child.kill()
        child.wait()
        os.close(fd)


async def test_what_is_too_much_from_the_start_is_seen_without_looking_for_processes(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(3 * MIB))
    asked: list[int] = []
    ended = asyncio.Event()
    watch = Watch([tmp_path], SandboxLimits(disk_bytes=2 * MIB), memory=False, kill=ended.set)
    watch.begin(lambda: asked.append(1))
    await asyncio.wait_for(ended.wait(), 20)
    await watch.end()
    assert asked == []


@pytest.mark.parametrize("depth", [1, 20, 3000])
def test_what_was_left_goes_however_deep_and_closed_it_is(tmp_path: Path, depth: int) -> None:
    top = tmp_path / "top"
    top.mkdir()
    here = os.open(top, os.O_RDONLY)
    for number in range(depth):
        os.close(os.open(f"file-{number}", os.O_CREAT | os.O_WRONLY, dir_fd=here))
        os.mkdir("d", dir_fd=here)
        deeper = os.open("d", os.O_RDONLY, dir_fd=here)
        if number % 2:
            os.chmod("d", 0, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(here)
    (top / "link").symlink_to(tmp_path)
    (tmp_path / "kept").touch()
    remove(top)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    remove(top)
