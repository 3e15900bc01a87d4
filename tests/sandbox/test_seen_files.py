"""The machine's files in a box: a small /etc, the policy's paths, and nothing through links."""

import asyncio
import errno
import os
import shutil
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from engine.runtimes.environments.execution import Execution, Executor, Order
from engine.runtimes.environments.failures import ScriptFailure
from engine.runtimes.process.box import Box, LevelUnavailable, Mount
from engine.runtimes.process.guardian import Guardian
from engine.runtimes.process.ownership import Owner
from engine.runtimes.process.processes import Launcher
from engine.runtimes.sandbox.levels.bubblewrap import Bubblewrap
from engine.runtimes.sandbox.levels.cgroups import Cgroup, Cgroups
from engine.runtimes.sandbox.levels.machine_paths import opened
from engine.runtimes.sandbox.levels.system_files import SystemFiles, shown_to_all
from engine.runtimes.sandbox.sandbox import Sandbox
from tests.machine import lacking
from toolagent.contracts.sandbox import SandboxLevel, SandboxPolicy
from workers.host.sandbox import identities, sandbox_of
from workers.state.directory import StateDirectory

LIMITS = SandboxPolicy().defaults


@pytest.fixture
def executor(tmp_path: Path) -> Generator[Executor]:
    tmp_path.chmod(0o755)
    owner = Owner.of_this_process(tmp_path)
    with Guardian(owner) as guardian:
        launcher = Launcher(owner, guardian, {}, shutil.which("setpriv"))
        level = Bubblewrap(tmp_path / "state" / "etc", Cgroups(owner), identities())
        yield Executor(launcher, Sandbox(level, SandboxPolicy()))


async def ran(executor: Executor, tmp_path: Path, text: str, *mounts: Mount) -> Execution:
    box = Box("seen", Path("/tmp"), LIMITS, mounts, {"PATH": "/usr/bin:/bin"})  # noqa: S108 - the sandbox's own
    return await executor.run(Order(["/bin/sh", "-c", text], box, 20, tmp_path / "logs"))


async def test_etc_is_small_and_has_no_private_key(executor: Executor, tmp_path: Path) -> None:
    done = await ran(executor, tmp_path, "ls -A /etc; ls -A /etc/ssl; cat /etc/passwd; id -un")
    listed = set(done.stdout.decode().split())
    assert done.code == 0
    assert not {"private", "shadow", "machine-id", "hostname", "ssh"} & listed
    assert {"passwd", "group", "hosts", "resolv.conf", "certs", "tool"} <= listed


async def test_etc_is_one_folder_for_all_runs_and_cannot_be_written(executor: Executor, tmp_path: Path) -> None:
    done = await ran(executor, tmp_path, "echo x >/etc/passwd; echo x >/etc/planted; echo x >/etc/ssl/planted; cat /etc/passwd")
    assert done.stderr.count(b"Read-only") == 3
    assert done.stdout.startswith(b"root:x:0:0")


def test_what_is_written_again_replaces_what_was_there(tmp_path: Path) -> None:
    for uid in (1, 1, 2):
        system = SystemFiles.write(tmp_path / "etc", (uid,))
    (whole,) = (mount.source for mount in system.few if mount.target == Path("/etc"))
    assert "tool:x:2:" in (whole / "passwd").read_text()
    # Each of them takes time at every launch.
    assert len(system.few) <= len(system.mounts) - 7


async def test_a_program_that_cannot_be_put_under_its_limits_does_not_begin(
    executor: Executor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Cgroup, "doors", ("/nonexistent/tasks",))
    (tmp_path / "own").mkdir()
    with pytest.raises(ScriptFailure, match="could not be put under its limits"):
        await ran(executor, tmp_path, f"touch {tmp_path}/own/begun", Mount(tmp_path / "own", tmp_path / "own", writable=True))
    assert not (tmp_path / "own" / "begun").exists()


async def test_all_that_runs_is_in_every_control_group(tmp_path: Path, executor: Executor) -> None:
    groups = Cgroups(Owner.of_this_process(tmp_path))
    if groups.missing:
        lacking("This user may not write control groups.")
    (tmp_path / "own").mkdir()
    own = Mount(tmp_path / "own", tmp_path / "own", writable=True)
    (tmp_path / "own" / "wait").touch()
    text = f"touch {own.target}/begun; while [ -e {own.target}/wait ]; do sleep 0.01; done"
    running = asyncio.create_task(ran(executor, tmp_path, text, own))
    async with asyncio.timeout(60):
        while not (tmp_path / "own" / "begun").exists():  # noqa: ASYNC110 - a program of its own tells nobody
            await asyncio.sleep(0.01)
    folders = set(groups.make("seen", LIMITS).folders.values())
    pids = [len((folder / "cgroup.procs").read_text().split()) for folder in folders]
    (tmp_path / "own" / "wait").unlink()
    assert (await running).code == 0
    # bubblewrap, the first inside, the shell and its sleep.
    assert all(count >= 3 for count in pids), pids
    assert not any(folder.exists() for folder in folders)


async def test_what_the_policy_names_is_seen_and_stays_whose_it_is(executor: Executor, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    (shared / "said").write_text("hello\n")
    before = shared.stat().st_uid
    there = Mount(shared, shared, writable=True, is_machines=True)
    done = await ran(executor, tmp_path, f"cat {shared}/said; echo back >{shared}/answer; ls /proc/self/fd", there)
    assert (done.code, done.stdout.split()) == (0, [b"hello", b"0", b"1", b"2", b"3"])
    assert (shared / "answer").read_text() == "back\n"
    assert shared.stat().st_uid == before


@pytest.mark.parametrize("link", ["shared/link", "shared/link/inner"])
async def test_a_link_that_was_put_into_what_the_policy_names_leads_nowhere(executor: Executor, tmp_path: Path, link: str) -> None:
    (tmp_path / "secret" / "inner").mkdir(parents=True)
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "link").symlink_to(tmp_path / "secret")
    path = tmp_path / link
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names alone
    with pytest.raises(LevelUnavailable, match="symbolic link"):
        await executor.sandbox.level.prepare(["/bin/true"], Box("linked", path, LIMITS, (Mount(path, path, is_machines=True),)))
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 - names alone


def test_opening_follows_no_link_and_says_which_it_was(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc")
    with pytest.raises(OSError, match="link is a symbolic link") as refused:
        opened(tmp_path / "link" / "passwd")
    assert refused.value.errno == errno.ELOOP
    with pytest.raises(FileNotFoundError):
        opened(tmp_path / "none")
    fd = opened(tmp_path)
    assert os.fstat(fd).st_ino == tmp_path.stat().st_ino
    os.close(fd)


async def test_a_state_directory_that_every_tool_would_see_lets_none_run(tmp_path: Path) -> None:
    owner = Owner.of_this_process(tmp_path)
    state = StateDirectory(Path("/usr/share/tool-agent"))
    with Guardian(owner) as guardian:
        levels = (SandboxLevel.BUBBLEWRAP,)
        told = await sandbox_of(levels, SandboxPolicy(), state, owner, Launcher(owner, guardian, {}), None, None)  # pyright: ignore[reportArgumentType] - not asked
    assert isinstance(told, str)
    assert "/usr, which every tool sees" in told
    assert shown_to_all(Path(sys.base_prefix, "lib")) is not None
    assert shown_to_all(tmp_path) is None
