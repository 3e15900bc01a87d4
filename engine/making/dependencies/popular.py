"""The names of popular packages, and the names that they are imported by."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from packaging.utils import canonicalize_name

_ONES_OWN = """banks build channels comm config crypto dataset editor enrich evaluate events face identify installer kernels limits locate
 match measurement parse path paste polling priority progress publication realtime result runs safety schema secure segments
 supervisor tools transaction tree verifiers"""
"""Everyday words: an import of one mostly means a module of the project itself, which may lie anywhere."""
_OF_MANY = "azure google snowflake"
"""Namespaces of several packages: `google.cloud` does not come from the package `google`."""
CERTAIN_AS_WRITTEN = frozenset({"Crypto"})
"""Modules that are a well-known package's with this capital letter only."""

NEVER_CERTAIN: frozenset[str] = frozenset(f"{_ONES_OWN} {_OF_MANY}".split())
"""Popular names that do not tell which package a module comes from."""


@dataclass(frozen=True, slots=True)
class PopularPackages:
    """`names` are normalised, the best known first; `by_import` says which package an import of another name comes from."""

    names: tuple[str, ...]
    by_import: Mapping[str, str]

    @classmethod
    def read(cls, file: Path) -> Self:
        """A line has a package, then the names it is imported by if they differ; `#` begins a comment. Raises OSError."""
        return cls.of(file.read_text(encoding="utf-8").splitlines())

    @classmethod
    def of(cls, lines: Iterable[str]) -> Self:
        names: dict[str, None] = {}
        by_import: dict[str, str] = {}  # a request for one of these is a mistake, however popular the name is
        for line in lines:
            words = [canonicalize_name(word) for word in line.partition("#")[0].split()]
            if words:
                names[words[0]] = None
                by_import |= dict.fromkeys(words[1:], words[0])
        return cls(tuple(name for name in names if name not in by_import), by_import)
