"""Folders for unix sockets, with paths short enough for an address (108 bytes with the closing zero)."""

import contextlib
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Collection
from pathlib import Path

from engine.disk.leftovers import discard
from engine.runtimes.process.ownership import Owner
from engine.runtimes.sandbox.identity import Identity

_LONGEST = 107
_BOX = "box"
_PROMPT_S = 0.2
"""Short, as it runs on the event loop, and a program may have filled the folder."""
_OWN = 0o700
_OF = "of.json"
"""A file that names the owner of a folder in the temporary directory."""
_FAR = re.compile(r"tool-agent-[0-9a-f]{16}")


class SocketFolder:
    """`path` is private; the sandbox sees its subfolder `box`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.box = path / _BOX

    @property
    def tool(self) -> Path:
        """The socket that leads to the tool."""
        return self.path / "tool.sock"

    def remove(self) -> None:
        discard(self.path, _PROMPT_S)


class SocketFolders:
    """Socket folders under the state directory, or, if its path is too long, in the system's temporary directory.

    `identity` is the user of payloads, if not the worker's own.
    """

    def __init__(self, state: Path, identity: Identity | None) -> None:
        self._state, self._temporary = state.resolve(), Path(tempfile.gettempdir())
        near, far = self._state / "run", self._temporary / f"tool-agent-{Owner.state_of(state)}"
        self._root = near if _fits(near) else far
        if not _fits(self._root):
            raise OSError(f"No path for a socket is short enough: neither below {near} nor below {far}.")
        self._identity = identity

    @property
    def root(self) -> Path:
        """The private folder of all socket folders, made if missing. Raises OSError."""
        with contextlib.suppress(FileExistsError):
            self._root.mkdir(mode=_OWN, parents=True)
        status = self._root.lstat()
        # The temporary directory is shared: another user may have made the folder first.
        if not self._root.is_dir() or self._root.is_symlink() or status.st_uid != os.geteuid():
            raise OSError(f"{self._root} is not a folder of ours: remove it.")
        self._root.chmod(_OWN)
        if self._root.parent == self._temporary:
            self._sign()
        return self._root

    def make(self, name: str, identity: Identity | None = None) -> SocketFolder:
        """The folder of the run `name`, made if missing. Raises OSError."""
        folder = SocketFolder(self.root / _short(name))
        for path in (folder.path, folder.box):
            path.mkdir(mode=_OWN, exist_ok=True)
            path.chmod(_OWN)
        self.hand_over(folder.box, identity)
        return folder

    def hand_over(self, path: Path, identity: Identity | None = None) -> None:
        """Hand the path to this user, or to the user of payloads."""
        if (user := identity or self._identity) is not None:
            user.own(path)

    def sweep(self, keep: Collection[str]) -> tuple[str, ...]:
        """Remove all folders except those of the runs in `keep`. Returns the names of the removed folders.

        Also removes the folders of state directories that are gone and whose worker is dead.
        """
        with contextlib.suppress(PermissionError):  # we may lack the permission to list it
            for folder in self._temporary.iterdir():
                if _FAR.fullmatch(folder.name) and _is_forsaken(folder):
                    discard(folder)
        kept = {_short(name) for name in keep}
        gone = tuple(sorted(entry.name for entry in self.root.iterdir() if entry.is_dir() and entry.name not in kept))
        for name in gone:
            SocketFolder(self._root / name).remove()
        return gone

    def close(self) -> None:
        """Remove our folder in the temporary directory, unless a lasting run still uses it."""
        with contextlib.suppress(OSError):  # it is missing, or not ours
            if self._root.parent == self._temporary and not any(entry.is_dir() for entry in self._root.iterdir()):
                discard(self._root)

    def _sign(self) -> None:
        """Write the state directory and the owner into the folder, as its name does not tell them."""
        text = json.dumps({"state": str(self._state), "owner": Owner.of_this_process(self._state).mark})
        mark = self._root / _OF
        if not mark.is_file() or mark.read_text("utf-8") != text:
            mark.write_text(text, "utf-8")


def _is_forsaken(folder: Path) -> bool:
    """Whether the folder's worker is dead and its state directory gone. False if the owner is unknown or another user."""
    # Processes may end meanwhile, and a killed worker may have written an incomplete mark.
    with contextlib.suppress(OSError, ValueError, KeyError):
        if folder.is_symlink() or folder.lstat().st_uid != os.geteuid():
            return False
        said = json.loads((folder / _OF).read_text("utf-8"))
        owner = Owner.read(said["owner"])
        return owner is not None and not owner.is_alive() and not Path(said["state"]).exists()
    return False


def _short(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:12]


def _fits(root: Path) -> bool:
    longest = SocketFolder(root / _short("")).box / "proxy.sock"
    return len(os.fsencode(longest)) <= _LONGEST
