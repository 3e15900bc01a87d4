"""Removes folders by descriptors, without recursion, in bounded time.

Programs may still write to the folder. A link put in the place of a folder is removed, never followed. Missing permissions are
restored by descriptor. At most `_DEEPEST` folders are open, however deep the tree is.
"""

import errno
import os
import secrets
import stat
import time
from collections.abc import Callable
from pathlib import Path

PATIENCE_S = 60.0
_OWN = 0o700
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ITSELF = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_DEEPEST = 32
"""Deeper folders are moved up: paths and descriptors are limited, trees are not."""
_FRUITLESS = 3
"""Attempts without progress before giving up; the obstacle may change between attempts."""
_LATER = (errno.ENOTDIR, errno.ELOOP, errno.EISDIR, errno.ENOTEMPTY, errno.EEXIST)
"""Errors of folders that are not empty, and of entries that changed a moment ago."""
_FDINFO = 256
_TOO_MUCH = "it was more than could be removed in time, or a program still writes to it"


class NotRemoved(OSError):
    """`path` could not be removed completely; `reason` says why."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(errno.ENOTEMPTY, f"It could not be removed: {reason}", shown(path))
        self.path, self.reason = path, reason


def remove(path: Path, patience_s: float = PATIENCE_S) -> None:
    """Remove a folder with its content, a file, or a link itself. A missing path is no error. Raises NotRemoved. Blocks.

    Programs must not be able to replace entries of the parent folder.
    """
    try:
        parent = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    except OSError as error:
        raise NotRemoved(path, _said(error)) from error
    try:
        _Removal(parent, path, patience_s).run()
    finally:
        os.close(parent)


class _Level:
    """An open folder and its remaining entries. Raises OSError."""

    def __init__(self, name: str, within: int) -> None:
        self.name, self.fd = name, _opened(name, within)
        try:
            self.mount = _mount_of(self.fd)
            self._entries = os.scandir(self.fd)
        except OSError:
            os.close(self.fd)
            raise

    def next(self) -> os.DirEntry[str] | None:
        return next(self._entries, None)

    def close(self) -> None:
        self._entries.close()
        os.close(self.fd)


class _Removal:
    def __init__(self, parent: int, path: Path, patience_s: float) -> None:
        self._parent, self._path, self._until = parent, path, time.monotonic() + patience_s
        self._done = 0
        self._kept: OSError | None = None
        self._lifted = f".lifted-{secrets.token_hex(8)}"

    def run(self) -> None:
        fruitless = 0
        while not self._is_gone():
            if fruitless == _FRUITLESS or self._is_late:
                raise NotRemoved(self._path, _said(self._kept) if fruitless and self._kept else _TOO_MUCH)
            before, self._kept = self._done, None
            self._look_through()
            fruitless = 0 if self._done > before else fruitless + 1

    @property
    def _is_late(self) -> bool:
        return time.monotonic() > self._until

    def _is_gone(self) -> bool:
        """Remove the path if one step suffices (a file, a link, an empty folder). Returns whether it is gone."""
        for step in (os.unlink, os.rmdir):
            try:
                step(self._path.name, dir_fd=self._parent)
            except FileNotFoundError:
                return True
            except OSError as error:
                self._keep(error)
            else:
                return True
        return False

    def _look_through(self) -> None:
        """One pass over the tree: removes all entries, each folder after its content."""
        levels: list[_Level] = []
        try:
            self._enter(levels, self._path.name)
            while levels and not self._is_late:
                entry = self._next_of(levels[-1])
                if entry is None:
                    self._leave(levels)
                elif not entry.is_dir(follow_symlinks=False):
                    self._try(os.unlink, entry.name, levels[-1].fd)
                elif len(levels) < _DEEPEST:
                    self._enter(levels, entry.name)
                else:
                    self._lift(levels, entry.name)
        finally:
            for level in levels:
                level.close()

    def _next_of(self, level: _Level) -> os.DirEntry[str] | None:
        try:
            return level.next()
        except OSError as error:
            self._keep(error)
            return None

    def _enter(self, levels: list[_Level], name: str) -> None:
        try:
            level = _Level(name, levels[-1].fd if levels else self._parent)
        except OSError as error:
            self._keep(error)
            return
        if levels and level.mount != levels[-1].mount:
            level.close()
            self._keep(OSError(errno.EBUSY, "something else is mounted there", name))
        else:
            levels.append(level)

    def _leave(self, levels: list[_Level]) -> None:
        level = levels.pop()
        level.close()
        if levels:
            self._try(os.rmdir, level.name, levels[-1].fd)

    def _lift(self, levels: list[_Level], name: str) -> None:
        """Move a folder up to the top, where the next pass finds it."""
        within, top = levels[-1].fd, levels[0].fd
        try:
            os.close(_opened(name, within))  # a folder without write permission cannot be moved
            os.rename(name, f"{self._lifted}-{self._done}", src_dir_fd=within, dst_dir_fd=top)
            self._done += 1
        except OSError as error:
            self._keep(error)

    def _try(self, step: Callable[..., None], name: str, within: int) -> None:
        try:
            step(name, dir_fd=within)
            self._done += 1
        except OSError as error:
            self._keep(error)

    def _keep(self, error: OSError) -> None:
        """Keep the first meaningful error: the error of a folder that is not empty only follows from another one."""
        if self._kept is None or self._kept.errno in _LATER:
            self._kept = error


def _opened(name: str, within: int) -> int:
    """A descriptor of a folder, made writable for us. Raises OSError, also for a link."""
    try:
        fd = os.open(name, _FOLDER, dir_fd=within)
    except PermissionError:
        _unlock(name, within)
        fd = os.open(name, _FOLDER, dir_fd=within)
    try:
        if os.fstat(fd).st_mode & _OWN != _OWN:
            os.fchmod(fd, _OWN)
    except OSError:
        os.close(fd)
        raise
    return fd


def _unlock(name: str, within: int) -> None:
    """Make a folder accessible for us. If a link has taken its place, its target stays unchanged."""
    fd = os.open(name, _ITSELF, dir_fd=within)
    try:
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            # fchmod does not accept an O_PATH descriptor.
            Path(f"/proc/self/fd/{fd}").chmod(_OWN)
    finally:
        os.close(fd)


def _mount_of(fd: int) -> bytes:
    """The id of the folder's mount: one file system may be mounted several times."""
    about = os.open(f"/proc/self/fdinfo/{fd}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(about, _FDINFO).partition(b"mnt_id:")[2].partition(b"\n")[0]
    finally:
        os.close(about)


def _said(error: OSError) -> str:
    name = f" ({shown(Path(str(error.filename)))})" if error.filename else ""
    return f"{error.strerror or error}{name}"


def shown(path: Path) -> str:
    """The path for messages; not every name is valid UTF-8."""
    return os.fsencode(path).decode("utf-8", "replace")
