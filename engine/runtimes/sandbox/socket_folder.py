"""Short-lived folders for unix sockets, where their paths fit into an address (108 bytes with the closing zero)."""

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Collection
from pathlib import Path

from engine.runtimes.ownership import Owner
from engine.runtimes.sandbox.identity import Identity

__all__ = ["SocketFolder", "SocketFolders"]

_LONGEST = 107
_BOX = "box"
_OWN = 0o700


class SocketFolder:
    """`path` is ours alone; `box`, in it, is what the sandbox sees."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.box = path / _BOX

    @property
    def tool(self) -> Path:
        """Where the tool is reached."""
        return self.path / "tool.sock"

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


class SocketFolders:
    """Under the state directory, or, where that has too long a path, in a folder of the system's temporary one.

    `identity` is the user that payloads are, when that is not who we are.
    """

    def __init__(self, state: Path, identity: Identity | None) -> None:
        near, far = state.resolve() / "run", Path(tempfile.gettempdir()) / f"tool-agent-{Owner.state_of(state)}"
        self._root = near if _fits(near) else far
        if not _fits(self._root):
            raise OSError(f"No path for a socket is short enough: neither below {near} nor below {far}.")
        self._identity = identity

    @property
    def root(self) -> Path:
        """Made if need be; nobody else's. Raises OSError."""
        with contextlib.suppress(FileExistsError):
            self._root.mkdir(mode=_OWN, parents=True)
        status = self._root.lstat()
        # The temporary directory is everybody's: somebody may have been there first.
        if not self._root.is_dir() or self._root.is_symlink() or status.st_uid != os.geteuid():
            raise OSError(f"{self._root} is not a folder of ours: remove it.")
        self._root.chmod(_OWN)
        return self._root

    def make(self, name: str) -> SocketFolder:
        """The folder of a run of this name, which may be there already. Raises OSError."""
        folder = SocketFolder(self.root / _short(name))
        for path in (folder.path, folder.box):
            path.mkdir(mode=_OWN, exist_ok=True)
            path.chmod(_OWN)
        self.hand_over(folder.box)
        return folder

    def hand_over(self, path: Path) -> None:
        """To the user that payloads are."""
        if self._identity is not None:
            self._identity.own(path)

    def sweep(self, keep: Collection[str]) -> tuple[str, ...]:
        """Remove what is there, but for the runs of these names; the names of the folders that went."""
        kept = {_short(name) for name in keep}
        gone = tuple(sorted(entry.name for entry in self.root.iterdir() if entry.is_dir() and entry.name not in kept))
        for name in gone:
            SocketFolder(self._root / name).remove()
        return gone


def _short(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:12]


def _fits(root: Path) -> bool:
    longest = SocketFolder(root / _short("")).box / "proxy.sock"
    return len(os.fsencode(longest)) <= _LONGEST
