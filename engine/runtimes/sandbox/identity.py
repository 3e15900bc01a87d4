"""The ordinary user of sandboxed programs, if the worker is root."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_DEEPEST = 64
"""Only hostile programs nest folders deeper; files below keep their owner."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A user and a group of the host, by number. They need no name, and should own nothing else."""

    uid: int
    gid: int

    def own(self, path: Path) -> None:
        """Hand over a file or folder without its content. Raises OSError."""
        os.chown(path, self.uid, self.gid, follow_symlinks=False)

    def own_all(self, folder: Path) -> None:
        """Hand over a folder with all in it that its owner owns, unless it is this user's already.

        Links are not followed. A file of ours with a second name stays ours: a program may have made that name. Raises OSError.
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
        # Last: after a crash the next call begins again.
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
"""The group of all tools' users, by which several tools can write to a granted folder of the machine."""

PAYLOAD = Identity(64_321, GROUP)
"""The user of containers made outside of a service. A service takes users from a range (`identities`); formerly all tools had this one.
Its files become the next user's, so files that are taken back from a user go to it."""


def owner_of(folder: Path) -> Identity:
    """Raises OSError."""
    status = folder.lstat()
    return Identity(status.st_uid, status.st_gid)
