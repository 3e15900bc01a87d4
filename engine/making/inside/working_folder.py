"""Makes a working folder that an app may write to: copies of the repository's files, links to large ones.

Written by Tool Agent.
The folder stays in the tool's home over restarts: the app's own files stay, and the repository's files are those of the running version.
A file that the app has changed is its own, except for modules. The repository's databases and logs are copied once, because the app
writes to them. A database's journals come with that copy or never: an old one would be replayed over what the app wrote since.
Small files are copied because many apps refuse a file that a link leads out of their folder to.

A list beside the folder has the digest of each file that a version brought. A file is ours if it has a digest that is listed for its path.
All others are the app's. If the list is lost, nothing else tells which files older versions brought: those that differ from the running
version's are taken for the app's until the version that brought them runs again. Where the app has a file and the version a folder, or the
reverse, the app's stays, also if its folder is empty, and the start goes on without the version's.

A file that cannot be read, or that there is no room for, is linked.
"""

import contextlib
import errno
import fcntl
import filecmp
import hashlib
import json
import os
import shutil
import stat
import time

_WRITTEN = (".db", ".sqlite", ".sqlite3", ".db3", ".duckdb", ".log")
_JOURNALS = ("-wal", "-journal", "-shm", ".wal")
"""What SQLite and DuckDB append to a database's name for files that hold a part of it."""
_SQLITE = b"SQLite format 3\0"
"""How such a database begins, whatever its name."""
_CODE = ".py"
_LARGE = 1 << 20
"""Bytes above which a file is linked, not copied: data, of which each tool would have a copy."""
_ROOM = 16 << 20
"""Bytes of the disk that copies leave free, so that the app can write."""
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_BEFORE = "work"
"""The folder of versions that were built earlier. They run any file there as the app's own, so no module is copied there."""
_UNLISTED = 1
"""The modification time, in seconds, of modules that a version copied before there was a list."""
_NEW = ".laid-out.new"
"""What a file is called until all of it is written."""
_RECENT_NS = 100_000_000
"""Longer than the tick of a file system's clock: within it, a file can change without another time."""


def laid_out(repository, name=None):
    """Makes or updates the folder of that name. The repository's folder begins with the files that the app wrote before."""
    whole = os.environ.get("HOME") or "/tmp"
    home, before = os.path.join(whole, name or "repository"), os.path.join(whole, _BEFORE)
    os.makedirs(whole, exist_ok=True)
    held = os.open(whole, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # not every file system has locks
            fcntl.flock(held, fcntl.LOCK_EX)  # two starts at once would write to one new file
        if name is None and os.path.isdir(before) and not os.path.exists(home):
            # Only once, so that files that the app removes later stay removed.
            _bring_along(before, repository, home + ".new")
            os.rename(home + ".new", home)
        os.makedirs(home, exist_ok=True)
        _lay_out(repository, home, os.path.join(whole, "." + os.path.basename(home) + ".laid-out"))
    finally:
        os.close(held)
    return home


def _bring_along(before, repository, home):
    """Links to the files that the app wrote, and to its own folders as a whole, so that an older version still finds them."""
    os.makedirs(home, exist_ok=True)
    for name in os.listdir(before):
        path, brought, target = (os.path.join(place, name) for place in (before, repository, home))
        if os.path.islink(path) or name == "__pycache__":
            continue
        if os.path.isdir(path) and os.path.isdir(brought):
            _bring_along(path, brought, target)
        elif not os.path.lexists(target):
            os.symlink(os.path.relpath(path, home), target)


def _lay_out(repository, home, listed):
    listed, digests = listed + ".json", _Digests(listed + ".seen.json")
    known, brought = _read(listed, list), _brought(repository, digests)
    ours = {path: known.get(path, []) + brought.get(path, []) for path in {**known, **brought}}
    if known != brought:
        _write(ours, listed)  # before the first copy, so that what a start leaves that dies is known as ours
    _forget_others(home, brought, ours, digests)
    for place, folders, files in os.walk(repository):
        folders[:] = [name for name in folders if not os.path.islink(os.path.join(place, name))]
        inside = os.path.relpath(place, repository)
        target = os.path.join(home, inside)
        if os.path.islink(target) and os.path.isdir(target):
            folders.clear()  # what is behind a link of the app is not ours to change
            continue
        if not os.path.isdir(target):
            if os.path.lexists(target):
                if _is_of_the_app(target, ours.get(inside, ()), digests):
                    folders.clear()
                    continue
                os.unlink(target)
            os.makedirs(target)
        for name in files:
            path = _path(inside, name)
            if path in brought:
                _place(os.path.join(place, name), os.path.join(target, name), brought[path], ours[path], digests)
    if known != brought:
        _write(brought, listed)
    digests.keep()


class _Digests:
    """Digests by what the file system says of a file, so that a later start reads only files that changed.

    A file that it says something else of is read, for example after a backup is restored.
    """

    def __init__(self, path):
        self._path, self._kept, self._met = path, _read(path, str), {}

    def of(self, path):
        """None for what is not copied, and for what cannot be read, or has vanished."""
        try:
            status = os.stat(path)
            if not stat.S_ISREG(status.st_mode) or (status.st_size > _LARGE and _ending(path) != _CODE):
                return None
            said = _said_of(status)
            digest = self._met[said][0] if said in self._met else self._kept.get(said)
            if digest is None:
                with open(path, "rb") as file:
                    digest = hashlib.sha256(file.read()).hexdigest()
        except OSError:
            return None
        self._met[said] = digest, status.st_ctime_ns
        return digest

    def copied(self, path, digest):
        status = os.stat(path)
        self._met[_said_of(status)] = digest, status.st_ctime_ns

    def keep(self):
        before = time.time_ns() - _RECENT_NS
        kept = {said: digest for said, (digest, changed_ns) in self._met.items() if changed_ns < before}
        if kept != self._kept:
            _write(kept, self._path)


def _said_of(status):
    return f"{status.st_dev} {status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"


def _brought(repository, digests):
    """For each file its digest, or none if it is linked or never replaced. Left out are links that lead nowhere, and journals."""
    found = {}
    for place, _, files in os.walk(repository):
        inside = os.path.relpath(place, repository)
        databases = {database for name in files for database in _databases_of(place, name)}
        journals = {database + ending for database in databases for ending in _JOURNALS}
        for name in files:
            if name in journals:
                continue
            source = os.path.join(place, name)
            digest = None if name in databases or _ending(name) in _WRITTEN else digests.of(source)
            if digest or os.path.isfile(source):
                found[_path(inside, name)] = [digest] if digest else []
    return found


def _databases_of(place, name):
    """The database whose journal the file is, if it is one."""
    if name.endswith(_JOURNALS):
        names = [name[: -len(ending)] for ending in _JOURNALS if name.endswith(ending)]
        return [database for database in names if _ending(database) in _WRITTEN or _is_sqlite(os.path.join(place, database))]
    return []


def _is_sqlite(path):
    with contextlib.suppress(OSError), open(path, "rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE
    return False


def _has_journal(path):
    return any(os.path.exists(path + ending) for ending in _JOURNALS) and _is_sqlite(path)


def _path(inside, name):
    return name if inside == os.curdir else inside + os.sep + name


def _ending(path):
    return os.path.splitext(path)[1].lower()


def _place(source, target, brought, ours, digests):
    is_code = _ending(source) == _CODE
    if brought and not os.path.islink(target) and digests.of(target) in brought:
        if is_code and os.stat(target).st_mtime == _UNLISTED:
            os.utime(target)  # so that a copy that the app makes of it is not taken for ours
    elif os.path.isdir(target):
        return
    elif not brought and (_ending(source) in _WRITTEN or _has_journal(source)):
        _place_written(source, target)
    elif not is_code and _is_of_the_app(target, ours, digests):
        return
    elif brought and (is_code or _leaves_room(source, target)) and _is_copied(source, target):
        digests.copied(target, brought[0])
    else:
        _link(source, target)


def _place_written(source, target):
    # Earlier versions linked journals, and SQLite opens no database beside such a link.
    linked = [ending for ending in ("", *_JOURNALS) if _leads_to(target + ending, source + ending)]
    if os.path.exists(target) and "" not in linked and not (linked and filecmp.cmp(source, target, shallow=False)):
        for ending in linked:
            _clear(target + ending)
        return
    for ending in _JOURNALS:
        _clear(target + ending)  # it belongs to a database that is no more
    journals = [ending for ending in _JOURNALS if os.path.isfile(source + ending)]
    # The database is the last, so that a start that dies before does not leave it without what its journals hold.
    if not all(_is_copied(source + ending, target + ending) for ending in (*journals, "")):
        for ending in journals:
            _clear(target + ending)
        _link(source, target)


def _is_of_the_app(path, ours, digests):
    if os.path.islink(path):
        # A relative link leads to a file that the app wrote in an older version, an absolute one to the repository of that version.
        return not os.path.isabs(os.readlink(path)) and os.path.exists(path)
    return os.path.exists(path) and (digests.of(path) not in ours or _has_journal(path))


def _leads_to(target, source):
    return os.path.islink(target) and os.readlink(target) == source


def _link(source, target):
    if not _leads_to(target, source):
        new = os.path.join(os.path.dirname(target), _NEW)
        _clear(new)
        os.symlink(source, new)
        os.replace(new, target)


def _leaves_room(source, target):
    status = os.statvfs(os.path.dirname(target))
    is_known = status.f_blocks > 0
    return not is_known or status.f_bavail * status.f_frsize >= os.path.getsize(source) + _ROOM


def _is_copied(source, target):
    """False for a file that cannot be read, or that there is no room for."""
    new = os.path.join(os.path.dirname(target), _NEW)
    _clear(new)
    try:
        shutil.copyfile(source, new)
    except OSError as error:
        _clear(new)
        if not isinstance(error, PermissionError) and error.errno not in _NO_ROOM:
            raise
        return False
    os.chmod(new, os.stat(source).st_mode & 0o777 | 0o200)
    os.replace(new, target)
    return True


def _clear(path):
    with contextlib.suppress(FileNotFoundError, IsADirectoryError):
        os.unlink(path)


def _read(path, kind):
    """The entries of a list whose values are of this kind. An app can write to the list, too."""
    try:
        with open(path) as file:
            found = json.load(file)
    except (OSError, ValueError, RecursionError):
        return {}
    return {key: value for key, value in found.items() if isinstance(value, kind)} if isinstance(found, dict) else {}


def _write(found, path):
    """On a full disk it stays as it was, and the next start tries again."""
    try:
        with open(path + ".new", "w") as file:
            json.dump(found, file)
            file.flush()
            os.fsync(file.fileno())  # after a crash of the machine it would be empty
        os.replace(path + ".new", path)
    except OSError as error:
        _clear(path + ".new")
        if error.errno not in _NO_ROOM:
            raise


def _forget_others(home, brought, ours, digests):
    """Removes copies of files that only an older version had, links to them, and their folders."""
    for place, _, files in os.walk(home):
        inside = os.path.relpath(place, home)
        for name in files:
            path, known = os.path.join(place, name), _path(inside, name)
            if name == _NEW or (known not in brought and _is_left(path, ours.get(known), digests)):
                _clear(path)
    home = os.path.realpath(home)
    for path in ours.keys() - brought.keys():
        while (path := os.path.dirname(path)) and _is_removed_if_empty(os.path.join(home, path)):
            pass


def _is_removed_if_empty(folder):
    if os.path.realpath(folder) != folder:
        return False  # it is behind a link of the app
    with contextlib.suppress(OSError):
        os.rmdir(folder)
    return not os.path.lexists(folder)


def _is_left(path, ours, digests):
    if os.path.islink(path):
        return not os.path.exists(path)
    if ours:
        return not _is_of_the_app(path, ours, digests)
    with contextlib.suppress(FileNotFoundError):
        return _ending(path) == _CODE and os.stat(path).st_mtime == _UNLISTED
    return False
