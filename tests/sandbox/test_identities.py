"""Every tool has its own user on the whole machine, and cannot exhaust its neighbours' kernel resources."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from engine.runtimes.process.box import Box, LevelUnavailable, Mount
from engine.runtimes.sandbox.egress import Opening
from engine.runtimes.sandbox.identities import Identities, mapped
from engine.runtimes.sandbox.identity import OURS, Identity
from tests.sandbox.networked import boxes
from toolagent.contracts.sandbox import SandboxPolicy

PYTHON = sys.base_prefix + "/bin/python3"
UIDS = range(60_706, 60_710)
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="An ordinary user has one user for all programs, which it says in its account.")
HOG = """
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
taken = 0
if sys.argv[1] == "inotify":
    while taken < int(sys.argv[2]) and libc.inotify_init1(0) >= 0: taken += 1
else:
    while taken < int(sys.argv[2]) and libc.mq_open(f"/q{taken}".encode(), os.O_CREAT | os.O_RDWR, 0o600, None) >= 0: taken += 1
print(taken, flush=True)
if len(sys.argv) > 3: time.sleep(60)
"""


@pytest.fixture
def users(tmp_path: Path) -> Identities:
    return Identities(UIDS, tmp_path / "users")


def folder(tmp_path: Path, name: str) -> Path:
    (tmp_path / name).mkdir(exist_ok=True)
    return tmp_path / name


def test_two_tools_never_share_a_user_and_runs_of_one_do(users: Identities, tmp_path: Path) -> None:
    one, other = folder(tmp_path, "one"), folder(tmp_path, "other")
    first, second, third = users.take(one), users.take(other), users.take(one)
    assert first.identity == third.identity
    assert first.identity != second.identity
    first.release()
    first.release()
    assert users.take(one).identity == third.identity


def test_runs_at_the_same_time_that_share_a_folder_are_one_user_wherever_they_name_it(users: Identities, tmp_path: Path) -> None:
    one, other, shared = (folder(tmp_path, name) for name in ("one", "other", "shared"))
    first, second = users.take(one, shared), users.take(other, shared)
    assert first.identity == second.identity
    first.release()
    assert users.take(shared).identity == second.identity
    assert users.take(one).identity != second.identity


def test_two_services_of_a_machine_never_share_a_user_and_one_that_is_used_up_says_so(users: Identities, tmp_path: Path) -> None:
    service = Identities(UIDS, tmp_path / "users")
    taken = [who.take(folder(tmp_path, f"{number}-{at}")) for number, who in enumerate((users, service)) for at in range(2)]
    assert {one.identity.uid for one in taken} == {*UIDS}
    with pytest.raises(LevelUnavailable, match="TOOL_AGENT_SANDBOX_UIDS"):
        users.take(tmp_path / "another")
    taken[0].release()
    assert service.take(tmp_path / "another").identity == taken[0].identity


def test_a_tool_gets_the_user_it_had_and_nobody_else_does_while_another_is_free(users: Identities, tmp_path: Path) -> None:
    names = [folder(tmp_path, str(number)) for number in range(3)]
    had = [users.take(name) for name in names]
    for taken in had:
        taken.release()
    again = Identities(UIDS, tmp_path / "users")
    assert again.take(folder(tmp_path, "new")).identity.uid not in {taken.identity.uid for taken in had}
    assert [again.take(name).identity for name in names] == [taken.identity for taken in had]


def test_without_a_folder_of_the_machine_a_service_has_its_own_and_says_so(users: Identities, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    alone = Identities(UIDS, tmp_path / "file" / "users", tmp_path / "own")
    assert (users.differences, [one.item for one in alone.differences]) == ((), ["neighbours"])
    assert alone.take(folder(tmp_path, "one")).identity != alone.take(folder(tmp_path, "other")).identity


@AS_ROOT
def test_what_was_another_users_is_given_back_and_handed_over_but_nothing_that_is_not_its_own(tmp_path: Path) -> None:
    users = Identities(range(60_706, 60_707), tmp_path / "users")
    home, new, secret = folder(tmp_path, "home"), folder(tmp_path, "new"), tmp_path / "secret"
    secret.write_text("of root")
    (home / "inner").mkdir()
    (home / "inner" / "file").touch()
    os.chown(home / "inner" / "file", 64_321, 64_321)  # as releases before did
    (home / "link").symlink_to(secret)
    (home / "planted").hardlink_to(secret)
    (home / "inner" / "second name").hardlink_to(home / "inner" / "file")
    box, own = Box("a", Path("/"), SandboxPolicy().defaults, (Mount(home, home, writable=True),)), {"inner", "file", "link", "second name"}
    run = users.of(box)
    owned = {path.name for path in home.rglob("*") if path.lstat().st_uid == 60_706}
    assert (owned, home.stat().st_uid, secret.stat().st_uid) == (own, 60_706, 0)
    run.release()
    users.take(new).release()
    assert {path.name for path in home.rglob("*") if path.lstat().st_uid == 60_706} == set()
    assert (secret.stat().st_uid, new.stat().st_uid) == (0, 0)
    users.of(box)
    assert {path.name for path in home.rglob("*") if path.lstat().st_uid == 60_706} == own


def test_only_users_that_there_are_here_are_taken() -> None:
    assert mapped(range(1, 2)) in (range(1, 2), range(0))
    assert mapped(range(2**32 - 1, 2**32)) == range(0)
    assert Identity(1, 1) != OURS


@AS_ROOT
@pytest.mark.parametrize(("what", "most"), [("inotify", 128), ("queues", 9)])
async def test_what_one_tool_takes_of_the_kernel_the_next_one_still_has(what: str, most: int) -> None:
    async with boxes() as made, made.opened(Opening()) as one, made.opened(Opening()) as other:
        hog = await one.launch(PYTHON, "-I", "-c", HOG, what, str(most), "stay")
        try:
            async with asyncio.timeout(60):
                while not hog.stdout.tail():  # noqa: ASYNC110 - another process writes it
                    await asyncio.sleep(0.02)
            neighbour = await other.run(PYTHON, "-I", "-c", HOG, what, str(most))
        finally:
            await hog.kill()
        assert (hog.stdout.tail(), neighbour.out) == (f"{most}\n", f"{most}\n")
