"""A removal is complete, removes nothing else, and takes a bounded time."""

import os
import resource
import shutil
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from engine.disk.leftovers import SET_ASIDE, Leftovers
from engine.disk.removal import NotRemoved, remove
from tests.programs import Program

ROOT = Path(__file__).parents[2]
DEEP = 3_000
SWAPS = """
import os, sys
top, victim = sys.argv[1:]
os.chdir(top)
print("at work", flush=True)
while os.getppid() == int(os.environ["PARENT"]):
    for step in (
        lambda: os.mkdir("top"), lambda: os.mkdir("top/d"), lambda: os.close(os.open("top/d/precious", os.O_CREAT)),
        lambda: os.rename("top/d", "top/e"), lambda: os.symlink(victim, "top/d"), lambda: os.unlink("top/d"),
        lambda: os.rename("top/e", "top/d"), lambda: os.rename("top/d", "top/f"), lambda: os.symlink(victim, "top/d"),
    ):
        try: step()
        except OSError: pass
"""
WRITES = """
import itertools, os, sys
print("at work", flush=True)
for number in itertools.count():
    try: os.makedirs(f"{sys.argv[1]}/{number % 50}/d"); open(f"{sys.argv[1]}/{number % 50}/f", "w").close()
    except OSError: pass
    if os.getppid() != int(os.environ["PARENT"]): break
"""
MOUNTED = """
import sys
from pathlib import Path
from engine.disk.removal import NotRemoved, remove
try: remove(Path(sys.argv[1]))
except NotRemoved as error: print(error.reason)
"""


@contextmanager
def at_work(program: str, *arguments: Path) -> Generator[None]:
    command = [sys.executable, "-S", "-c", program, *map(str, arguments)]
    with Program(command, stdout=subprocess.PIPE, env={"PARENT": str(os.getpid())}) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"at work\n"
        try:
            yield
        finally:
            process.kill()


def deep(folder: Path, levels: int) -> None:
    folder.mkdir()
    here = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=here)
        deeper = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(os.open("f", os.O_CREAT, dir_fd=here))
    os.close(here)


def test_a_tree_of_any_depth_goes_with_few_open_files(tmp_path: Path) -> None:
    deep(tmp_path / "tree", DEEP)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(path.name) for path in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 80, hard))
    try:
        remove(tmp_path / "tree")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


def test_whatever_a_program_can_make_goes_and_what_links_lead_to_stays(tmp_path: Path) -> None:
    tree, outside = tmp_path / "tree", tmp_path / "outside"
    outside.mkdir(mode=0o755)
    (outside / "file").write_bytes(b"precious")
    (outside / "file").chmod(0o604)
    for name in (b"closed/within", b"\xff\xfe", b"x" * 255, b"sealed", b".lifted-0", b"new\nline"):
        (tree / os.fsdecode(name)).mkdir(parents=True)
    (tree / "sealed" / "file").touch()
    os.link(outside / "file", tree / "sealed" / "other name")
    os.mkfifo(tree / "pipe")
    (tree / "to a folder").symlink_to(outside)
    (tree / "to a file").symlink_to(outside / "file")
    (tree / "to nowhere").symlink_to("nowhere")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(tree / "socket"))
    if os.geteuid() == 0:
        os.mknod(tree / "device", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    (tree / "closed").chmod(0)
    (tree / "sealed").chmod(0o555)
    tree.chmod(0o500)
    remove(tree)
    assert (outside.stat().st_mode & 0o777, (outside / "file").stat().st_mode & 0o777) == (0o755, 0o604)
    assert ([path.name for path in tmp_path.iterdir()], (outside / "file").read_bytes()) == (["outside"], b"precious")


def test_of_a_link_the_link_goes_and_what_is_not_there_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    for name in ("link", "link", "no/such/folder"):
        remove(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_a_link_that_is_swapped_in_meanwhile_leads_nowhere(tmp_path: Path) -> None:
    victim, arena = tmp_path / "victim", tmp_path / "arena"
    victim.mkdir(mode=0o750)
    arena.mkdir()
    # Before the program begins, which makes one of its own mode where its link leads to.
    (victim / "precious").touch(mode=0o640)
    until = time.monotonic() + 3
    with at_work(SWAPS, arena, victim):
        while time.monotonic() < until:
            with suppress(NotRemoved):
                remove(arena / "top", 0.2)
            assert (victim / "precious").exists()
            assert (victim.stat().st_mode & 0o777, (victim / "precious").stat().st_mode & 0o777) == (0o750, 0o640)


def test_what_a_program_writes_to_keeps_nobody_longer_than_he_waits(tmp_path: Path) -> None:
    (busy := tmp_path / "busy").mkdir()
    with at_work(WRITES, busy):
        began = time.monotonic()
        with suppress(NotRemoved):
            remove(busy, 0.5)
        assert time.monotonic() - began < 3
    remove(busy)
    assert list(tmp_path.iterdir()) == []


def test_what_could_not_be_removed_gives_its_name_free_and_goes_later(tmp_path: Path) -> None:
    left = Leftovers()
    (tmp_path / "tree" / "inner").mkdir(parents=True)
    error = left.discard(tmp_path / "tree", patience_s=0)
    assert error is not None
    assert [path.name.startswith(SET_ASIDE) for path in tmp_path.iterdir()] == [True]
    (tmp_path / "tree").mkdir()
    assert (dict(left.sweep()), left.known) == ({}, ())
    assert [path.name for path in tmp_path.iterdir()] == ["tree"]


def test_a_sweep_takes_its_time_and_no_more_however_much_is_left_and_each_has_its_turn(tmp_path: Path) -> None:
    left = Leftovers()
    for name in ("one", "other"):
        (tmp_path / name / "inner").mkdir(parents=True)
        left.discard(tmp_path / name, patience_s=0)
    one, other = left.known
    assert [[*left.sweep(turn_s=0)] for _ in range(3)] == [[one], [other], [one]]


def test_what_is_mounted_is_not_emptied(tmp_path: Path) -> None:
    tree, mounted = tmp_path / "tree", tmp_path / "mounted"
    (tree / "inner" / "mount").mkdir(parents=True)
    mounted.mkdir()
    (mounted / "precious").touch()
    script = 'mount --bind "$1" "$2" && exec "$3" -c "$4" "$5"'
    command = ["-Urm", "sh", "-c", script, "sh", str(mounted), str(tree / "inner/mount"), sys.executable, MOUNTED, str(tree)]
    unshare = shutil.which("unshare")
    assert unshare is not None
    done = subprocess.run([unshare, *command], cwd=ROOT, check=True, capture_output=True, text=True, timeout=30)
    assert done.stdout == "something else is mounted there (mount)\n"
    assert (mounted / "precious").exists()
