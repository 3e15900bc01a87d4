"""Control groups: place, limits and removal; version 2 on a fake tree, as few machines have both."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from engine.runtimes.process.box import Ending
from engine.runtimes.process.ownership import Owner
from engine.runtimes.sandbox.levels.cgroups import Cgroup, Cgroups
from tests.machine import lacking
from toolagent.contracts.sandbox import SandboxLimits

LIMITS = SandboxLimits(memory_bytes=64 << 20, cpus=0.5, processes=7)
ALL = "cpuset cpu io memory pids"


def own_group(root: Path) -> Path:
    """This process's group in version 2, below a fake root."""
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    return root / next((line.split(":", 2)[2] for line in lines if line.startswith("0::")), "/").lstrip("/")


def tree(root: Path, controllers: str, *groups: Path) -> Path:
    """Folders like the kernel's, with controllers already enabled."""
    for group in (root, *groups):
        group.mkdir(parents=True, exist_ok=True)
        (group / "cgroup.controllers").write_text(ALL)
        (group / "cgroup.subtree_control").write_text(controllers)
        (group / "cgroup.procs").write_text("")
    return root


def owner(tmp_path: Path) -> Owner:
    return Owner.of_this_process(tmp_path)


def test_in_version_2_a_group_has_all_limits_in_one_folder(tmp_path: Path) -> None:
    own = own_group(tmp_path / "cg")
    root = tree(tmp_path / "cg", ALL, own, own / "tool-agent")
    groups = Cgroups(owner(tmp_path), root)
    group = groups.make("run-1", LIMITS)
    (folder,) = set(group.folders.values())
    assert group.doors == ()
    assert (groups.missing, folder.parent, folder.name.endswith(".run-1")) == ((), own / "tool-agent", True)
    assert {path.name: path.read_text() for path in folder.iterdir()} == {
        "memory.max": str(64 << 20),
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "pids.max": "7",
        "cpu.max": "50000 100000",
    }


def test_in_version_2_a_tree_that_is_not_ours_gives_nothing(tmp_path: Path) -> None:
    root = tmp_path / "cg"
    root.mkdir()
    (root / "cgroup.controllers").write_text(ALL)
    assert Cgroups(owner(tmp_path), root).missing == ("memory", "pids", "cpu")


def test_in_version_2_a_worker_that_moved_aside_uses_the_group_it_came_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = tmp_path / "cg" / "a"
    root = tree(tmp_path / "cg", ALL, base, base / "tool-agent", base / "tool-agent-worker")

    def moved(root: Path, _: str) -> Path:
        return root / "a" / "tool-agent-worker"

    monkeypatch.setattr("engine.runtimes.sandbox.levels.cgroups._own", moved)
    group = Cgroups(owner(tmp_path), root).make("run-1", LIMITS)
    assert {folder.parent for folder in group.folders.values()} == {root / "a" / "tool-agent"}


def test_in_version_1_there_is_a_folder_for_each_controller(tmp_path: Path) -> None:
    root = tmp_path / "cg"
    for name in ("memory", "pids", "cpu"):
        (root / name).mkdir(parents=True)
    groups = Cgroups(owner(tmp_path), root)
    group = groups.make("run-1", LIMITS)
    assert set(group.doors) == {str(folder / "tasks") for folder in group.folders.values()}
    said = {name: {path.name: path.read_text() for path in folder.iterdir()} for name, folder in group.folders.items()}
    assert said == {
        "memory": {"memory.limit_in_bytes": str(64 << 20), "memory.memsw.limit_in_bytes": str(64 << 20)},
        "pids": {"pids.max": "7"},
        "cpu": {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "50000"},
    }


def test_where_nothing_is_mounted_all_is_missing_and_a_group_is_nothing(tmp_path: Path) -> None:
    groups = Cgroups(owner(tmp_path), tmp_path / "none")
    assert groups.missing == ("memory", "pids", "cpu")
    group = groups.make("run-1", LIMITS)
    group.add(os.getpid())
    assert (group.folders, group.ending()) == ({}, Ending())


@pytest.mark.parametrize(
    ("events", "is_unified", "ending"),
    [
        ({"memory": ("memory.events", "low 0\noom 3\noom_kill 1\n")}, True, Ending(out_of_memory=True)),
        ({"memory": ("memory.events", "oom 3\noom_kill 0\n")}, True, Ending()),
        ({"memory": ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n")}, False, Ending(out_of_memory=True)),
        ({"pids": ("pids.events", "max 4\n")}, True, Ending(processes_refused=True)),
        ({"pids": ("pids.events", "nonsense")}, True, Ending()),
    ],
)
def test_what_the_kernel_counted_is_read(tmp_path: Path, events: Mapping[str, tuple[str, str]], is_unified: bool, ending: Ending) -> None:
    for controller, (file, text) in events.items():
        (tmp_path / controller).mkdir()
        (tmp_path / controller / file).write_text(text)
    assert Cgroup({name: tmp_path / name for name in events}, is_unified).ending() == ending


@pytest.fixture
def groups(tmp_path: Path) -> Cgroups:
    real = Cgroups(owner(tmp_path))
    if real.missing:
        lacking("This user may not write control groups.")
    return real


async def test_removing_a_group_ends_all_that_is_in_it(groups: Cgroups) -> None:
    group = groups.make("removed", LIMITS)
    process = subprocess.Popen(["/bin/sleep", "1000"])  # noqa: ASYNC220 - a real one, at once
    group.add(process.pid)
    await group.remove()
    assert process.wait(5) == -9
    assert not any(folder.exists() for folder in group.folders.values())
    await group.remove()


async def test_a_sweep_takes_what_dead_workers_of_this_state_directory_left_and_of_others_what_is_empty(
    groups: Cgroups, tmp_path: Path
) -> None:
    mine = groups.make("mine", LIMITS)
    here, pid = Owner.of_this_process(tmp_path), 2**22 + 1
    dead = Cgroups(Owner(here.state, pid, 1.0)).make("dead", LIMITS)
    strange, empty = (Cgroups(Owner("0" * 16, pid, 1.0)).make(name, LIMITS) for name in ("strange", "empty"))
    alive = Cgroups(Owner("0" * 16, here.pid, here.created)).make("alive", LIMITS)
    ours, theirs = (subprocess.Popen(["/bin/sleep", "1000"]) for _ in range(2))  # noqa: ASYNC220 - real ones, at once
    try:
        dead.add(ours.pid)
        strange.add(theirs.pid)
        assert [name.endswith(".dead") for name in await groups.sweep()] == [True]
        assert not any(folder.exists() for one in (dead, empty) for folder in one.folders.values())
        assert all(folder.exists() for one in (mine, strange, alive) for folder in one.folders.values())
        assert (ours.wait(5), theirs.poll()) == (-9, None)
    finally:
        for group in (mine, dead, strange, empty, alive):
            await group.remove()
        for process in (ours, theirs):
            process.kill()
            process.wait()


async def test_a_limit_that_the_kernel_refuses_leaves_no_group(groups: Cgroups) -> None:
    usual = groups.make("refused", LIMITS)
    await usual.remove()
    with pytest.raises(OSError, match="Invalid argument"):
        groups.make("refused", LIMITS.model_copy(update={"cpus": 1e9}))
    assert [folder for folder in usual.folders.values() if folder.exists()] == []
