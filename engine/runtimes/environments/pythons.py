"""Finds the Pythons of this machine (the system's, uv's, pyenv's and others') without running them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from findpython.providers import ALL_PROVIDERS

_OLDEST = 8
"""The oldest minor version of Python 3 that uv installs for."""

_NAME = re.compile(r"python3\.(\d+)")
_MINOR = re.compile(r"\s*(?:cpython|python)?[-=@\s]*3\.(\d+)", re.IGNORECASE)
_SYSTEM = (Path("/usr/bin"), Path("/usr/local/bin"))


def pythons_at(named: Sequence[Path] = ()) -> Mapping[str, Path]:
    """Real paths by minor version (`3.12`), the newest first. `named` are programs or folders, and take precedence."""
    found: dict[int, Path] = {}
    for path in (*_in(named), *_in(_SYSTEM), *_of_installers()):
        name = _NAME.fullmatch(path.name)
        # A manager may put a script on the PATH; an installation has its library beside it.
        if name and int(name[1]) >= _OLDEST and (path.parent.parent / "lib" / path.name / "os.py").is_file():
            found.setdefault(int(name[1]), path)
    return {f"3.{minor}": found[minor] for minor in sorted(found, reverse=True)}


def minor_of(text: str) -> str:
    """`3.9` for `3.9.18`, `python-3.9.1` or `cpython@3.9`; empty without a minor version."""
    found = _MINOR.match(text)
    return f"3.{int(found[1])}" if found else ""


def _in(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        inside = [path, *path.glob("python3*"), *path.glob("bin/python3*")]
        yield from (one.resolve() for one in sorted(inside) if one.is_file())


@cache
def _of_installers() -> tuple[Path, ...]:
    """Searched once, as a PATH can be long."""
    here = [provider for kind in ALL_PROVIDERS.values() if (provider := kind.create()) is not None]
    return tuple(path for one in here for path in sorted(found.executable.resolve() for found in one.find_pythons()))
