"""Makes a working folder that an app may write to: copies of the repository's files, links to large ones.

Written by Tool Agent.
The folder stays in the tool's home over restarts: the app's own files stay, and the repository's files are those of the running version.
A file that the app has changed is its own, except for modules. The repository's databases and logs are copied once, because the app
writes to them. Small files are copied because many apps refuse a file that a link leads out of their folder to.

A list beside the folder has the digest of each file that a version brought. A file is ours if it has a digest that is listed for its path.
All others are the app's. Where the app has a file and the version a folder, or the reverse, the app's stays, and the start goes on without
the version's. A file that cannot be read is linked.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil

_WRITTEN = (".db", ".sqlite", ".sqlite3", ".db3", ".log")
_CODE = ".py"
_LARGE = 1 << 20
"""Bytes above which a file is linked, not copied: data, of which each tool would have a copy."""
_BEFORE = "work"
"""The folder of versions that were built earlier. They run any file there as the app's own, so no module is copied there."""
_UNLISTED = 1
"""The modification time, in seconds, of modules that a version copied before there was a list."""
_NEW = ".laid-out.new"
"""What a file is called until all of it is written."""


def laid_out(repository, name=None):
    """Makes or updates the folder of that name. The repository's folder begins with the files that the app wrote before."""
    whole = os.environ.get("HOME") or "/tmp"
    home, before = os.path.join(whole, name or "repository"), os.path.join(whole, _BEFORE)
    if name is None and os.path.isdir(before) and not os.path.exists(home):
        # Only once, so that files that the app removes later stay removed.
        _bring_along(before, repository, home + ".new")
        os.rename(home + ".new", home)
    os.makedirs(home, exist_ok=True)
    held = os.open(home, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # not every file system has locks
            fcntl.flock(held, fcntl.LOCK_EX)  # two starts at once would write to one new file
        _lay_out(repository, home, os.path.join(whole, "." + os.path.basename(home) + ".laid-out.json"))
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
    known, brought = _read(listed), _brought(repository)
    ours = {path: known.get(path, []) + brought.get(path, []) for path in {**known, **brought}}
    if known != brought:
        _write(ours, listed)  # before the first copy, so that what a start leaves that dies is known as ours
    _forget_others(home, brought, ours)
    for place, folders, files in os.walk(repository):
        folders[:] = [name for name in folders if not os.path.islink(os.path.join(place, name))]
        inside = os.path.relpath(place, repository)
        target = os.path.join(home, inside)
        if os.path.lexists(target) and not os.path.isdir(target):
            if _is_of_the_app(target, ours.get(inside, ())):
                folders.clear()
                continue
            os.unlink(target)
        os.makedirs(target, exist_ok=True)
        for name in files:
            path = os.path.normpath(os.path.join(inside, name))
            if path in brought:
                _place(os.path.join(place, name), os.path.join(target, name), brought[path], ours[path])
    if known != brought:
        _write(brought, listed)


def _brought(repository):
    """For each file its digest, or none if it is linked or never replaced. Links that lead nowhere are left out."""
    found = {}
    for place, _, files in os.walk(repository):
        for name in files:
            source = os.path.join(place, name)
            if os.path.isfile(source):
                digest = None if _ending(name) in _WRITTEN else _digest(source)
                found[os.path.relpath(source, repository)] = [digest] if digest else []
    return found


def _digest(path):
    """None for what is not copied, or has vanished."""
    try:
        if not os.path.isfile(path) or (os.path.getsize(path) > _LARGE and _ending(path) != _CODE):
            return None
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except (FileNotFoundError, PermissionError):
        return None


def _ending(path):
    return os.path.splitext(path)[1].lower()


def _place(source, target, digests, ours):
    if os.path.isdir(target) and not _removed_if_empty(target):
        return
    if _ending(source) in _WRITTEN:
        if not os.path.exists(target):
            _copy(source, target)
    elif _ending(source) != _CODE and _is_of_the_app(target, ours):
        return
    elif not digests:
        _link(source, target)
    elif os.path.islink(target) or _digest(target) not in digests:
        _copy(source, target)
    elif os.stat(target).st_mtime == _UNLISTED:
        os.utime(target)  # so that a copy that the app makes of it is not taken for ours


def _removed_if_empty(folder):
    if not os.path.islink(folder):
        for place, _, _ in os.walk(folder, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(place)
    return not os.path.isdir(folder)


def _is_of_the_app(path, ours):
    if os.path.islink(path):
        # A relative link leads to a file that the app wrote in an older version, an absolute one to the repository of that version.
        return not os.path.isabs(os.readlink(path)) and os.path.exists(path)
    return os.path.exists(path) and _digest(path) not in ours


def _link(source, target):
    if os.path.islink(target) and os.readlink(target) == source:
        return
    _clear(target)
    os.symlink(source, target)


def _copy(source, target):
    new = os.path.join(os.path.dirname(target), _NEW)
    _clear(new)
    try:
        shutil.copyfile(source, new)
    except PermissionError:
        _link(source, target)
        return
    os.chmod(new, os.stat(source).st_mode & 0o777 | 0o200)
    os.replace(new, target)


def _clear(path):
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def _read(listed):
    try:
        with open(listed) as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


def _write(digests, listed):
    with open(listed + ".new", "w") as file:
        json.dump(digests, file)
    os.replace(listed + ".new", listed)


def _forget_others(home, brought, ours):
    """Removes copies of files that only an older version had, and links to them."""
    for place, _, files in os.walk(home):
        for name in files:
            path = os.path.join(place, name)
            inside = os.path.relpath(path, home)
            if name == _NEW or (inside not in brought and _is_left(path, ours.get(inside))):
                _clear(path)


def _is_left(path, ours):
    if os.path.islink(path):
        return not os.path.exists(path)
    if ours:
        return _digest(path) in ours
    with contextlib.suppress(FileNotFoundError):
        return _ending(path) == _CODE and os.stat(path).st_mtime == _UNLISTED
    return False
