"""A script path outside of its root is refused, and nothing is run."""

import os
from pathlib import Path

import pytest

from engine.runtimes.environments.failures import ScriptErrorKind, ScriptFailure
from engine.runtimes.environments.paths import find_script
from tests.scripts.harness import Scripts

BAD = [
    "../outside.py",
    "a/../../outside.py",
    "a/../main.py",
    "..",
    "/etc/passwd",
    "//etc/passwd",
    "~/main.py",
    "~root/main.py",
    "a\\..\\main.py",
    "C:\\main.py",
    "a/main.py\0.txt",
    "a/ma\nin.py",
    "a/main.py\u202e",
    "a/\u200bmain.py",
    "\uff0e\uff0e/outside.py",
    "\uff0fetc/passwd",
    "a/main\u2024py",
    "\ud800/main.py",
    "a/main.py\ufeff",
    "",
    "a/" * 600 + "main.py",
]


@pytest.mark.parametrize("path", BAD, ids=ascii)
async def test_a_path_that_leads_out_or_is_odd_is_refused(scripts: Scripts, root: Path, path: str) -> None:
    (root.parent / "outside.py").write_text("print(1)")
    scripts.write("a/main.py", "print(1)")
    assert await scripts.refused(path) is ScriptErrorKind.SECURITY


@pytest.mark.parametrize("path", ["link.py", "linked/main.py", "a/up/outside.py", "loop/main.py", "inside.py"])
async def test_a_symbolic_link_is_not_followed(scripts: Scripts, root: Path, path: str) -> None:
    scripts.write("a/main.py", "print(1)")
    (root.parent / "outside.py").write_text("print(1)")
    (root / "link.py").symlink_to(root.parent / "outside.py")
    (root / "inside.py").symlink_to(root / "a/main.py")
    (root / "linked").symlink_to(root / "a")
    (root / "a/up").symlink_to(root.parent)
    (root / "loop").symlink_to(root / "loop")
    assert await scripts.refused(path) is ScriptErrorKind.SECURITY


@pytest.mark.parametrize("path", ["nowhere.py", "a/nowhere.py", "a", "a/main.py/more", "x" * 300 + ".py"])
async def test_what_is_not_there_is_said_to_be_missing(scripts: Scripts, path: str) -> None:
    scripts.write("a/main.py", "print(1)")
    assert await scripts.refused(path) is ScriptErrorKind.NOT_FOUND


def test_a_pipe_is_no_script(root: Path) -> None:
    os.mkfifo(root / "pipe.py")
    with pytest.raises(ScriptFailure) as caught:
        find_script(root, "pipe.py")
    assert caught.value.kind is ScriptErrorKind.NOT_FOUND


@pytest.mark.parametrize("path", ["a/main.py", "./a/main.py", "a//main.py", "数据/处理 1.py", "é.py", "-c.py"])
async def test_other_names_are_as_good(scripts: Scripts, path: str) -> None:
    scripts.write(path, "print(1)")
    assert (await scripts.run(path)).output == 1


def test_a_root_that_is_a_link_itself_is_meant(tmp_path: Path, root: Path) -> None:
    (root / "main.py").touch()
    (tmp_path / "link").symlink_to(root)
    assert find_script(tmp_path / "link", "main.py").file == root / "main.py"
