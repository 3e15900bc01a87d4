"""Makes a working folder that an app may write to: the repository's folders, with a link to each file. Written by Tool Agent.

The folder stays in the tool's home over restarts: the app's own files stay, and the repository's files are those of the running version.
The repository's databases and logs are copied once, because the app writes to them. Modules are copied too, so that an app that writes
beside its modules is not led to a read-only folder.
"""

import filecmp
import os
import shutil

_WRITTEN = (".db", ".sqlite", ".sqlite3", ".db3", ".log")
_CODE = ".py"
_BEFORE = "work"
"""The folder of versions that were built earlier. They run any file there as the app's own, so no module is copied there."""
_OURS = 1
"""The modification time, in seconds, of modules that were copied here. The app's own files have others."""


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
            _link(os.path.join(place, name), os.path.join(target, name))
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


def _link(source, target):
    ending = os.path.splitext(source)[1].lower()
    if ending in _WRITTEN:
        if not os.path.exists(target):
            shutil.copyfile(source, target)
        return
    if ending == _CODE:
        _copy(source, target)
        return
    if os.path.islink(target):
        if os.readlink(target) == source or (not os.path.isabs(os.readlink(target)) and os.path.exists(target)):
            return  # a relative link leads to a file that the app wrote in an older version
        os.unlink(target)
    elif os.path.lexists(target):
        return  # the app has its own file
    os.symlink(source, target)


def _copy(source, target):
    if os.path.isfile(target) and not os.path.islink(target) and filecmp.cmp(source, target, shallow=False):
        return
    if os.path.lexists(target):
        os.unlink(target)
    shutil.copyfile(source, target)
    os.utime(target, (_OURS, _OURS))


def _forget_others(home, repository):
    """Removes links and modules of files that only an older version had."""
    for place, _, files in os.walk(home):
        for name in files:
            path = os.path.join(place, name)
            is_left = name.endswith(_CODE) and not os.path.islink(path) and os.stat(path).st_mtime == _OURS
            source = os.path.join(repository, os.path.relpath(path, home)) if is_left else path
            if (is_left or os.path.islink(path)) and not os.path.exists(source):
                os.unlink(path)
