"""Makes a working folder that an app may write to: copies of the repository's files, links to large ones. Written by Tool Agent.

The folder stays in the tool's home over restarts: the app's own files stay, and the repository's files are those of the running version.
A file that the app has changed is its own, except for modules. The repository's databases and logs are copied once, because the app
writes to them. Small files are copied because many apps refuse a file that a link leads out of their folder to.
"""

import filecmp
import os
import shutil

_WRITTEN = (".db", ".sqlite", ".sqlite3", ".db3", ".log")
_CODE = ".py"
_LARGE = 1 << 20
"""Bytes above which a file is linked, not copied: data, of which each tool would have a copy."""
_BEFORE = "work"
"""The folder of versions that were built earlier. They run any file there as the app's own, so no module is copied there."""
_OURS = 1
"""The modification time, in seconds, of what was copied here. The app's own files have others."""


def laid_out(repository, name=None):
    """Makes or updates the folder of that name. The repository's folder begins with the files that the app wrote before."""
    whole = os.environ.get("HOME") or "/tmp"
    home, before = os.path.join(whole, name or "repository"), os.path.join(whole, _BEFORE)
    if name is None and os.path.isdir(before) and not os.path.exists(home):
        # Only once, so that files that the app removes later stay removed.
        _bring_along(before, repository, home + ".new")
        os.rename(home + ".new", home)
    for place, folders, files in os.walk(repository):
        folders[:] = [name for name in folders if not os.path.islink(os.path.join(place, name))]
        target = os.path.join(home, os.path.relpath(place, repository))
        os.makedirs(target, exist_ok=True)
        for name in files:
            _place(os.path.join(place, name), os.path.join(target, name))
    _forget_others(home, repository)
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


def _place(source, target):
    ending = os.path.splitext(source)[1].lower()
    if not os.path.isfile(source):
        return  # a link that leads nowhere
    if ending in _WRITTEN:
        if not os.path.exists(target):
            shutil.copyfile(source, target)
    elif ending == _CODE:
        _copy(source, target)
    elif not _is_of_the_app(target):
        (_link if os.path.getsize(source) > _LARGE else _copy)(source, target)


def _is_of_the_app(path):
    if os.path.islink(path):
        # A relative link leads to a file that the app wrote in an older version, an absolute one to the repository of that version.
        return not os.path.isabs(os.readlink(path)) and os.path.exists(path)
    return os.path.exists(path) and not _is_ours(path)


def _is_ours(path):
    return not os.path.islink(path) and os.stat(path).st_mtime == _OURS


def _link(source, target):
    if os.path.islink(target) and os.readlink(target) == source:
        return
    if os.path.lexists(target):
        os.unlink(target)
    os.symlink(source, target)


def _copy(source, target):
    if os.path.isfile(target) and not os.path.islink(target) and filecmp.cmp(source, target, shallow=False):
        return
    if os.path.lexists(target):
        os.unlink(target)
    shutil.copyfile(source, target)
    os.chmod(target, os.stat(source).st_mode & 0o777 | 0o200)
    os.utime(target, (_OURS, _OURS))


def _forget_others(home, repository):
    """Removes copies of files that only an older version had, and links to them."""
    for place, _, files in os.walk(home):
        for name in files:
            path = os.path.join(place, name)
            is_copy = _is_ours(path)
            source = os.path.join(repository, os.path.relpath(path, home)) if is_copy else path
            if (is_copy or os.path.islink(path)) and not os.path.exists(source):
                os.unlink(path)
