"""A working folder that an app may write to: its repository's folders, with a link to each of the files. Written by Tool Agent.

It is kept in the tool's home over restarts: what the app writes there stays, and what the repository brings is always that of the version
that runs. Databases and logs that the repository brings are copied once, as they are written to. Modules are copied, too: who asks where
they really are, to write beside them, is not led to a read-only folder.
"""

import filecmp
import os
import shutil

_WRITTEN = (".db", ".sqlite", ".sqlite3", ".db3", ".log")
_CODE = ".py"
_BEFORE = "work"
"""Where versions that were built earlier lay theirs out. They run any file there as the app's own, so that no module is copied there."""
_OURS = 1
"""The time of change of a module that was copied here, in seconds: the app's own have others."""


def laid_out(repository, name=None):
    """The folder of that name; it is made, or made good. That of the repository begins with what the app wrote before."""
    whole = os.environ.get("HOME") or "/tmp"
    home, before = os.path.join(whole, name or "repository"), os.path.join(whole, _BEFORE)
    if name is None and os.path.isdir(before) and not os.path.exists(home):
        # Once, and whole: what the app removes later stays removed.
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
    """Relative links to what the app wrote there, folders of its own as a whole: an older version finds it where it was."""
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
            return  # the latter is what the app wrote in an older version
        os.unlink(target)
    elif os.path.lexists(target):
        return  # the app has written its own
    os.symlink(source, target)


def _copy(source, target):
    if os.path.isfile(target) and not os.path.islink(target) and filecmp.cmp(source, target, shallow=False):
        return
    if os.path.lexists(target):
        os.unlink(target)
    shutil.copyfile(source, target)
    os.utime(target, (_OURS, _OURS))


def _forget_others(home, repository):
    """Links and modules of files that an older version had."""
    for place, _, files in os.walk(home):
        for name in files:
            path = os.path.join(place, name)
            is_left = name.endswith(_CODE) and not os.path.islink(path) and os.stat(path).st_mtime == _OURS
            source = os.path.join(repository, os.path.relpath(path, home)) if is_left else path
            if (is_left or os.path.islink(path)) and not os.path.exists(source):
                os.unlink(path)
