"""Puts together what is kept of a repository as a local tool: its files, our launcher, a lock."""

import contextlib
import os
import shutil
from pathlib import Path

from engine.making.launcher import REPOSITORY, launcher_of
from engine.making.trees import LEFT_OUT, Tree
from engine.registry.archives import MAX_BYTES, MAX_FILES
from engine.runtimes.sandbox.removal import remove
from toolagent.contracts.plans import AsgiBuild

__all__ = ["insist_on_room", "pack_asgi", "pack_repository"]

_MIB = 1024 * 1024


def insist_on_room(repository: Path) -> None:
    """Raises ValueError when it is larger than what is kept of a tool: said before anything is built of it. Blocks."""
    tree = Tree.read(repository)
    size, count = tree.extent.size, tree.extent.count
    if count > MAX_FILES:
        more = "" if tree.is_whole else "more than "
        raise ValueError(f"The repository holds {more}{count:,} files, and a tool may have {MAX_FILES:,}. {_REMEDY}")
    if size > MAX_BYTES:
        largest = max(tree.files, key=tree.size_of)
        raise ValueError(
            f"The repository holds {size / _MIB:.1f} MiB, and a tool may have {MAX_BYTES // _MIB}; the largest file is {largest} with "
            f"{tree.size_of(largest) / _MIB:.1f} MiB. {_REMEDY}"
        )


_REMEDY = "Leave out of it what the app does not need, or have the app fetch it when it runs."


def pack_asgi(plan: AsgiBuild, repository: Path, lock: str, into: Path) -> None:
    """Makes the folder `into` anew: `main.py`, `requirements.lock` and the repository. Raises ValueError, OSError. Blocks."""
    launcher = launcher_of(plan)
    remove(into)
    into.mkdir(parents=True)
    (into / "main.py").write_text(launcher)
    (into / "requirements.lock").write_text(lock)
    _copy(repository, into / REPOSITORY)
    _open_to_all(into)


def pack_repository(repository: Path, into: Path) -> None:
    """Makes the folder `into` anew, of the repository as it is. Raises OSError. Blocks."""
    remove(into)
    into.parent.mkdir(parents=True, exist_ok=True)
    _copy(repository, into)
    _open_to_all(into)


def _open_to_all(folder: Path) -> None:
    """Who reads it in the sandbox is another user."""
    for inside, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(inside, name)
            path.chmod(path.stat().st_mode | (0o755 if path.is_dir() else 0o644))
    folder.chmod(0o755)


def _copy(repository: Path, target: Path) -> None:
    """Regular files; a link to one of them becomes a copy, a link to a folder is left out."""
    root = repository.resolve()
    target.mkdir()
    for path in Tree.read(repository).files:
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):  # a name that is no UTF-8 text
            shutil.copy(repository / path, target / path, follow_symlinks=False)
    for inside, folders, files in os.walk(repository):
        folders[:] = [name for name in folders if name not in LEFT_OUT]
        for link in (Path(inside, name) for name in files if Path(inside, name).is_symlink()):
            leads_to = link.resolve()
            if leads_to.is_relative_to(root) and leads_to.is_file():
                place = target / link.relative_to(repository)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(leads_to, place)
