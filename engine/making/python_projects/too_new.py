"""Whether a program fails because its Python is newer than what it depends on was made for."""

import re
import sys

__all__ = ["is_too_new"]

_GONE = frozenset({"asynchat", "asyncore", "cgi", "cgitb", "crypt", "distutils", "imp", "pipes", "smtpd", "telnetlib"})
"""Of Python's own library in versions before 3.12 and 3.13."""
_LIBRARY = _GONE | sys.stdlib_module_names
_MISSING = (
    re.compile(r"No module named '([A-Za-z_]\w*)"),
    re.compile(r"cannot import name '\w+' from '([A-Za-z_]\w*)"),
    re.compile(r"module '([A-Za-z_]\w*)[\w.]*' has no attribute"),
)
_FRAME = re.compile(r'^ *File "([^"\n]+)", line \d+, in (\S+)', re.MULTILINE)
_LAST = re.compile(r"^(AttributeError|ImportError|NameError|RuntimeError|SyntaxError|TypeError|ValueError)\b", re.MULTILINE)
_NEAR = 4
_PACKAGES = "/site-packages/"


def is_too_new(told: str) -> bool:
    """By what it wrote: it misses something of Python's own library, or a package that it depends on fails while it is imported."""
    if any(found[1] in _LIBRARY for pattern in _MISSING for found in pattern.finditer(told)):
        return True
    frames = _FRAME.findall(told)[-_NEAR:]
    is_at_import = any(_PACKAGES in file and function == "<module>" for file, function in frames)
    return is_at_import and _LAST.search(told) is not None
