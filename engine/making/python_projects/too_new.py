"""Recognises failures of programs whose Python, or a package, is too new for them."""

import re
import sys

from packaging.utils import canonicalize_name

_GONE = frozenset({"asynchat", "asyncore", "cgi", "cgitb", "crypt", "distutils", "imp", "pipes", "smtpd", "telnetlib"})
"""Modules that Python 3.12 and 3.13 removed. Other missing modules of its library were never on this machine."""
_LIBRARY = sys.stdlib_module_names - {"os", "signal", "time"}
"""Modules whose names differ by version; those of the excluded ones differ by machine."""
_NO_MODULE = re.compile(r"No module named '([A-Za-z_]\w*)")
_MISSING = (
    re.compile(r"cannot import name '\w+' from '([A-Za-z_]\w*)([\w.]*)"),
    re.compile(r"module '([A-Za-z_]\w*)([\w.]*)' has no attribute"),
)
_CHANGED = (re.compile(r"No module named '([A-Za-z_]\w*)(\.[\w.]*)"), *_MISSING)
"""A package is there, and lacks something: its name, and the rest of the module's."""
_PRIVATE = re.compile(r"\._[a-zA-Z]")
"""Such modules change with minor versions, and other packages use them all the same."""
_PKG_RESOURCES = "No module named 'pkg_resources'"
_WITH_PKG_RESOURCES = "setuptools<81"
"""Until Python 3.12, environments had it by default; later versions lack the module."""
_PSYCOPG, _PSYCOPG2 = "No module named 'psycopg'", re.compile(r"^psycopg2", re.MULTILINE)
_WITH_PSYCOPG2 = "sqlalchemy<2.1"
"""Later versions use psycopg, not psycopg2, for PostgreSQL addresses without a driver."""
_FRAME = re.compile(r'^ *File "([^"\n]+)", line \d+, in (\S+)', re.MULTILINE)
_LAST = re.compile(r"^(AttributeError|ImportError|NameError|SyntaxError|TypeError|ValueError)\b", re.MULTILINE)
_OF_THE_MACHINE = "cannot open shared object file"
_NEAR = 4
_PACKAGES = "/site-packages/"


def is_too_new(told: str) -> bool:
    """Whether the output shows that something of Python's library is missing, or the import of a package fails."""
    if _OF_THE_MACHINE in told:
        return False
    if any(found[1] in _GONE for found in _NO_MODULE.finditer(told)):
        return True
    if any(found[1] in _LIBRARY for pattern in _MISSING for found in pattern.finditer(told)):
        return True
    frames = _FRAME.findall(told)[-_NEAR:]
    is_at_import = any(_PACKAGES in file and function == "<module>" for file, function in frames)
    return is_at_import and _LAST.search(told) is not None


def older_package(told: str, lock: str) -> str:
    """A requirement below the locked major version of a package that lacks something; empty if there is none.

    Below its minor version, if a module is private. Or the setuptools or the database driver that projects take for granted.
    """
    if _PKG_RESOURCES in told:
        return _WITH_PKG_RESOURCES
    if _PSYCOPG in told and _PSYCOPG2.search(lock):
        return _WITH_PSYCOPG2
    for name, inner in (found.groups() for pattern in _CHANGED for found in pattern.finditer(told)):
        if name in sys.stdlib_module_names:
            continue
        package = canonicalize_name(name)
        pinned = re.search(rf"^{re.escape(package)}(?:\[[^]]*\])?==((\d+)\.\d+)", lock, re.MULTILINE)
        if pinned and int(pinned[2]):
            return f"{package}<{pinned[1] if _PRIVATE.search(inner) else pinned[2]}"
    return ""
