"""The watch counts what the kernel does not, including hidden files."""

import asyncio
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from engine.disk.removal import remove
from engine.runtimes.process.box import Box
from engine.runtimes.process.ownership import Owner
from engine.runtimes.sandbox.levels.bubblewrap import Bubblewrap
from engine.runtimes.sandbox.levels.cgroups import Cgroups
from engine.runtimes.sandbox.levels.watch import Watch
from toolagent.contracts.sandbox import SandboxLimits, SandboxPolicy
from workers.host.sandbox import identities

MIB = 1024 * 1024


async def over(folder: Path, **limits: int) -> Watch:
    """A watch that has ended the run of this process."""
    ended = asyncio.Event()
    watch = Watch([folder], SandboxLimits(**limits), memory="memory_bytes" in limits, kill=ended.set)  # pyright: ignore[reportArgumentType] - names of fields
    watch.begin(os.getpid)
    try:
        async with asyncio.timeout(60):
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
    watch = await over(tmp_path, disk_bytes=1024 * MIB)
    assert (watch.disk_full, watch.disk_hidden) == (True, True)
    remove(tmp_path / "d")  # pytest cannot


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
    await asyncio.wait_for(ended.wait(), 60)
    await watch.end()
    assert asked == []


async def test_what_was_done_since_the_last_look_counts_too_and_nobody_is_ended_for_it(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as looking:
        asyncio.get_running_loop().set_default_executor(looking)
        ended = asyncio.Event()
        watch = Watch([tmp_path], SandboxLimits(disk_bytes=2 * MIB), memory=False, kill=ended.set)
        watch.begin(lambda: None)
        await asyncio.sleep(0)
        await asyncio.to_thread(lambda: None)  # behind the first look
        (tmp_path / "a").write_bytes(bytes(3 * MIB))
        await watch.end()
    assert (watch.disk_full, ended.is_set()) == (True, False)


async def test_a_watch_that_fails_ends_the_run(tmp_path: Path) -> None:
    def failing() -> int:
        raise RecursionError

    ended = asyncio.Event()
    watch = Watch([tmp_path], SandboxLimits(disk_bytes=2 * MIB), memory=False, kill=ended.set)
    with capture_logs() as logs:
        watch.begin(failing)
        await asyncio.wait_for(ended.wait(), 60)
        await watch.end()
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [("watch_failed", "error")]


async def test_the_group_of_a_run_goes_whatever_fails_before(tmp_path: Path) -> None:
    owner = Owner.of_this_process(tmp_path)
    level = Bubblewrap(tmp_path / "etc", Cgroups(owner), identities())
    prepared = await level.prepare(["/usr/bin/true"], Box("failing", tmp_path, SandboxPolicy().defaults))
    groups = [Path(folder, name) for folder, names, _ in os.walk("/sys/fs/cgroup") for name in names if name == f"{owner.mark}.failing"]
    assert groups
    os.close(prepared.pass_fds[0])
    with pytest.raises(OSError, match="descriptor"):
        await prepared.end()
    assert not any(group.exists() for group in groups)


def test_of_a_link_only_the_link_goes(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir(mode=0o755)
    (tmp_path / "kept" / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    remove(tmp_path / "link")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["file"]
    assert (tmp_path / "kept").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("depth", [1, 20, 2100])
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
