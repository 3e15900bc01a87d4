"""Repositories made by the real git."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

_WHO = ("-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main", "-c", "commit.gpgSign=false")


def git(folder: Path, *arguments: str, stdin: str = "") -> str:
    done = subprocess.run(("git", "-C", str(folder), *_WHO, *arguments), input=stdin, check=True, capture_output=True, text=True)  # noqa: S607
    return done.stdout.strip()


def repository(folder: Path, files: Mapping[str, str]) -> str:
    """A repository with these files in one commit. Returns its address."""
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    git(folder, "init", "--quiet")
    commit(folder, files)
    return f"file://{folder}"


def commit(folder: Path, files: Mapping[str, str]) -> str:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "a commit")
    return git(folder, "rev-parse", "HEAD")
