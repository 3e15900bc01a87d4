"""Small disks, and limits of file sizes."""

import os
import resource
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.machine import lacking

__all__ = ["file_size_limit", "fill", "tiny_disk"]


@contextmanager
def tiny_disk(folder: Path, size: str) -> Generator[Path]:
    """A disk of this size (`256k`, `4m`) in `folder`. Skips the test if none can be mounted."""
    folder.mkdir()
    mount, unmount = shutil.which("mount"), shutil.which("umount")
    if os.geteuid() != 0 or mount is None or unmount is None:
        pytest.skip("only root mounts a disk")
    mounted = subprocess.run([mount, "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True, check=False)
    if mounted.returncode != 0:
        lacking(f"no disk can be mounted here: {mounted.stderr.decode()}")
    try:
        yield folder
    finally:
        # Lazily: a process that is being ended may still look at a file there.
        subprocess.run([unmount, "-l", folder], check=True)


@contextmanager
def file_size_limit(size: int) -> Generator[None]:
    """No file of this process may grow beyond this number of bytes, as with a user's quota."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def fill(filler: Path) -> None:
    """Make a file that fills its disk."""
    with filler.open("wb", buffering=0) as target, suppress(OSError):
        while True:
            target.write(bytes(4096))
