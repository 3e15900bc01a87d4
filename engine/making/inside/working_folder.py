"""A working folder that an app may write to: its repository's folders, with a link to each of the files. Written by Tool Agent.

It is kept in the tool's home over restarts: what the app writes there stays, and what the repository brings is always that of the version
that runs. Databases and logs that the repository brings are copied once, as they are written to.
"""

import os
import shutil

_WRITTEN = (".db", ".sqlite", ".sqlite3", ".db3", ".log")


def laid_out(repository):
    """The folder; it is made, or made good."""
    home = os.path.join(os.environ.get("HOME") or "/tmp", "work")
    for place, folders, files in os.walk(repository):
        folders[:] = [name for name in folders if not os.path.islink(os.path.join(place, name))]
        target = os.path.join(home, os.path.relpath(place, repository))
        os.makedirs(target, exist_ok=True)
        for name in files:
            _link(os.path.join(place, name), os.path.join(target, name))
    _forget_others(home)
    return home


def _link(source, target):
    if os.path.splitext(source)[1].lower() in _WRITTEN:
        if not os.path.exists(target):
            shutil.copyfile(source, target)
        return
    if os.path.islink(target):
        if os.readlink(target) == source:
            return
        os.unlink(target)
    elif os.path.lexists(target):
        return  # the app has written its own
    os.symlink(source, target)


def _forget_others(home):
    """Links of files that an older version had."""
    for place, _, files in os.walk(home):
        for name in files:
            path = os.path.join(place, name)
            if os.path.islink(path) and not os.path.exists(path):
                os.unlink(path)
