"""Finds a script by a caller's path, which never leaves the root."""

import os
import stat
import unicodedata
from pathlib import Path, PurePosixPath

from engine.runtimes.environments.dependencies import Script
from engine.runtimes.environments.failures import ScriptErrorKind, ScriptFailure

_LONGEST = 1024
_SHOWN = 200


def find_script(root: Path, path: str) -> Script:
    """Raises ScriptFailure: `SecurityError` for a path that leads out or tries to, `ScriptNotFoundError` if there is no file."""
    parts = _parts(path)
    here = root.resolve()
    try:
        for name in parts:
            here = here / name
            if here.is_symlink():
                raise _refused(path, "leads through a symbolic link")
        kind = os.lstat(here).st_mode
    except FileNotFoundError:
        raise _missing(path, "There is no such file.") from None
    except OSError as error:
        raise _missing(path, f"It cannot be reached: {error.strerror}.") from error
    if not stat.S_ISREG(kind):
        raise _missing(path, "It is not a file.")
    return Script(here, "/".join(parts))


def _parts(path: str) -> tuple[str, ...]:
    """The path's names. Paths that people, Python and the file system could read differently are refused."""
    if not path or len(path) > _LONGEST:
        raise _refused(path, f"is empty or longer than {_LONGEST} characters")
    if any(unicodedata.category(character).startswith("C") for character in path):
        raise _refused(path, "holds a control character, or one that is invisible or means nothing")
    if unicodedata.normalize("NFKC", path) != path:
        raise _refused(path, "holds characters that stand for others")
    if "\\" in path or path.startswith(("/", "~")):
        raise _refused(path, "is not relative to the script root with `/` between its names")
    parts = PurePosixPath(path).parts
    if ".." in parts:
        raise _refused(path, "leads out of its folder")
    return parts


def _refused(path: str, why: str) -> ScriptFailure:
    message = f"The script path {_shown(path)} {why}. Give a path below the script root, such as 'examples/echo.py'."
    return ScriptFailure(ScriptErrorKind.SECURITY, message, {"script_path": _plain(path)})


def _missing(path: str, why: str) -> ScriptFailure:
    return ScriptFailure(ScriptErrorKind.NOT_FOUND, f"The script {_shown(path)} cannot be run: {why}", {"script_path": _plain(path)})


def _shown(path: str) -> str:
    """The path in ASCII, which makes odd characters visible."""
    return ascii(path[:_SHOWN])


def _plain(path: str) -> str:
    """The same without quotes, for programs."""
    return _shown(path)[1:-1]
