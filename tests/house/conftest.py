"""Fixtures of the house rules: the root, and the files that git tracks or would add."""

import shutil
import subprocess
from pathlib import Path

import pytest

__all__ = ["files", "root"]


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the repository."""
    return Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def files(root: Path) -> tuple[Path, ...]:
    """Files that are tracked, or untracked and not ignored, relative to the root; sorted."""
    git = shutil.which("git")
    assert git is not None, "The guards ask git which files are ours: install git."
    listed = subprocess.run([git, "ls-files", "-coz", "--exclude-standard"], cwd=root, check=True, capture_output=True, text=True)
    paths = {Path(name) for name in listed.stdout.split("\0") if name}
    # A file that is deleted but not yet committed is still listed.
    return tuple(sorted(path for path in paths if (root / path).is_file()))
