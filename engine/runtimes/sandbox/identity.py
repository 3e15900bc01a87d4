"""The ordinary user that programs in a sandbox are, when the worker itself is root."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_DEEPEST = 64
"""Only a hostile program makes it deeper: the owner of what lies below stays."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A user and a group of the host, by number. They need no name, and should have nothing else."""

    uid: int
    gid: int

    def own(self, path: Path) -> None:
        """Hand over a file or folder, not what is in it. Raises OSError."""
        os.chown(path, self.uid, self.gid, follow_symlinks=False)

    def own_all(self, folder: Path) -> None:
        """Hand over a folder with what is its owner's in it, unless it is this user's: then so is the rest.

        Links are not followed, and a file of ours that has another name as well stays ours: a program may have given it this one.
        Raises OSError.
        """
        status = folder.lstat()
        if status.st_uid == self.uid:
            return
        if stat.S_ISDIR(status.st_mode):
            fd = os.open(folder, _FOLDER)
            try:
                self._own_in(fd, status.st_uid, 0)
            finally:
                os.close(fd)
        # Last: after a crash it begins again.
        self.own(folder)

    def _own_in(self, folder: int, was: int, depth: int) -> None:
        with os.scandir(folder) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                is_folder = stat.S_ISDIR(status.st_mode)
                if is_folder and depth < _DEEPEST:
                    inner = os.open(entry.name, _FOLDER, dir_fd=folder)
                    try:
                        self._own_in(inner, was, depth + 1)
                    finally:
                        os.close(inner)
                is_last_owners = status.st_uid == was and (is_folder or status.st_nlink == 1 or was != OURS.uid)
                if is_last_owners or status.st_uid == PAYLOAD.uid:
                    os.chown(entry.name, self.uid, self.gid, dir_fd=folder, follow_symlinks=False)


OURS = Identity(os.geteuid(), os.getegid())

GROUP = 64_321
"""Of all tools, whichever user each is: they can write each other's files in folders of the machine that several of them may write."""

PAYLOAD = Identity(64_321, GROUP)
"""Of containers that are made outside of a service. A service takes users of a range (`identities`); once all tools were this one.
What it has becomes the next user's, whatever it is: so this one gets what is taken back."""


def owner_of(folder: Path) -> Identity:
    """Raises OSError."""
    status = folder.lstat()
    return Identity(status.st_uid, status.st_gid)
