"""The filter refuses every way to make a set-uid program, and no other call."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.runtimes.sandbox.levels.seccomp import filter_fd

PRELUDE = """
import ctypes, os, struct, sys
rules = os.read(int(sys.argv[1]), 1 << 20)
held = ctypes.create_string_buffer(rules)
program = struct.pack("HxxxxxxP", len(rules) // 8, ctypes.addressof(held))
prctl = ctypes.CDLL(None, use_errno=True).prctl
assert prctl(38, 1, 0, 0, 0) == 0 and prctl(22, 2, program, 0, 0) == 0, ctypes.get_errno()
def named(fd):
    os.link(f"/proc/self/fd/{fd}", "named", src_dir_fd=fd, follow_symlinks=True)
try:
    PROGRAM
except OSError as error:
    sys.exit(error.errno)
"""
WAYS = {
    "a new file": "os.open('file', os.O_CREAT | os.O_WRONLY, {mode})",
    "a file without a name": "named(os.open('.', os.O_TMPFILE | os.O_RDWR, {mode}))",
    "a file there is": "open('file', 'w').close(); os.chmod('file', {mode})",
    "an open file": "os.fchmod(os.open('file', os.O_CREAT | os.O_RDWR, 0o600), {mode})",
    "a node": "os.mknod('file', {mode})",
}


def code_of(way: str, mode: int, folder: Path) -> int:
    fd = filter_fd()
    try:
        program = PRELUDE.replace("PROGRAM", WAYS[way].format(mode=mode))
        return subprocess.run([sys.executable, "-I", "-c", program, str(fd)], cwd=folder, pass_fds=[fd], timeout=60, check=False).returncode
    finally:
        os.close(fd)


@pytest.mark.parametrize("mode", [0o4755, 0o2755, 0o6755])
@pytest.mark.parametrize("way", WAYS)
def test_no_file_gets_another_users_rights(way: str, mode: int, tmp_path: Path) -> None:
    assert code_of(way, mode, tmp_path) == errno.EPERM


@pytest.mark.parametrize("mode", [0o600, 0o1755])
@pytest.mark.parametrize("way", WAYS)
def test_all_other_modes_are_the_programs_business(way: str, mode: int, tmp_path: Path) -> None:
    assert code_of(way, mode, tmp_path) == 0
