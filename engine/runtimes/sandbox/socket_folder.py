"""Short-lived folders for unix sockets, where their paths fit into an address (108 bytes with the closing zero)."""

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
"""On the event loop, which must not stand still for what a program may have put there."""
_OWN = 0o700
_OF = "of.json"
"""In a folder of the temporary directory: whose it is."""
_FAR = re.compile(r"tool-agent-[0-9a-f]{16}")


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
        discard(self.path, _PROMPT_S)


class SocketFolders:
    """Under the state directory, or, where that has too long a path, in a folder of the system's temporary one.

    `identity` is the user that payloads are, when that is not who we are.
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
        """Made if need be; it is private. Raises OSError."""
        with contextlib.suppress(FileExistsError):
            self._root.mkdir(mode=_OWN, parents=True)
        status = self._root.lstat()
        # The temporary directory is shared: another user may have made it first.
        if not self._root.is_dir() or self._root.is_symlink() or status.st_uid != os.geteuid():
            raise OSError(f"{self._root} is not a folder of ours: remove it.")
        self._root.chmod(_OWN)
        if self._root.parent == self._temporary:
            self._sign()
        return self._root

    def make(self, name: str, identity: Identity | None = None) -> SocketFolder:
        """The folder of a run of this name, which may be there already. Raises OSError."""
        folder = SocketFolder(self.root / _short(name))
        for path in (folder.path, folder.box):
            path.mkdir(mode=_OWN, exist_ok=True)
            path.chmod(_OWN)
        self.hand_over(folder.box, identity)
        return folder

    def hand_over(self, path: Path, identity: Identity | None = None) -> None:
        """To this user, or that which payloads are."""
        if (user := identity or self._identity) is not None:
            user.own(path)

    def sweep(self, keep: Collection[str]) -> tuple[str, ...]:
        """Remove what is there, but for the runs of these names; the names of the folders that went.

        With it go the folders of state directories that are no more, whose worker is dead.
        """
        with contextlib.suppress(PermissionError):  # it may not be ours to list
            for folder in self._temporary.iterdir():
                if _FAR.fullmatch(folder.name) and _is_forsaken(folder):
                    discard(folder)
        kept = {_short(name) for name in keep}
        gone = tuple(sorted(entry.name for entry in self.root.iterdir() if entry.is_dir() and entry.name not in kept))
        for name in gone:
            SocketFolder(self._root / name).remove()
        return gone

    def close(self) -> None:
        """Remove our folder in the temporary directory, unless a run that outlasts us is reached through it."""
        with contextlib.suppress(OSError):  # there is none, or it is not ours after all
            if self._root.parent == self._temporary and not any(entry.is_dir() for entry in self._root.iterdir()):
                discard(self._root)

    def _sign(self) -> None:
        """Its name does not say where the state directory is, nor which process uses it."""
        text = json.dumps({"state": str(self._state), "owner": Owner.of_this_process(self._state).mark})
        mark = self._root / _OF
        if not mark.is_file() or mark.read_text("utf-8") != text:
            mark.write_text(text, "utf-8")


def _is_forsaken(folder: Path) -> bool:
    """False when its owner is not known, or is another user."""
    # Processes come and go meanwhile, and a killed worker may have written half a mark.
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
