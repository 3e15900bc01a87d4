"""The names of popular packages, and the names that they are imported by."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from packaging.utils import canonicalize_name

_ONES_OWN = """banks build channels comm config dataset editor enrich evaluate events face identify installer kernels limits locate match
 measurement parse path paste polling priority progress publication realtime result runs safety schema secure segments supervisor tools
 transaction verifiers"""
"""Everyday words: whoever imports one has mostly a module of their own in mind, which may lie anywhere."""
_OF_MANY = "azure google snowflake"
"""Several packages share the name: `google.cloud` is none of the one that is called so."""
NEVER_CERTAIN = frozenset(f"{_ONES_OWN} {_OF_MANY}".split())
"""Popular names that say nothing certain of the package that a module comes from."""


@dataclass(frozen=True, slots=True)
class PopularPackages:
    """`names` are normalised, the best known first; `by_import` says which package an import of another name comes from."""

    names: tuple[str, ...]
    by_import: Mapping[str, str]

    @classmethod
    def read(cls, file: Path) -> Self:
        """One package a line, behind it what it is imported as where that differs; `#` begins a comment. Raises OSError."""
        return cls.of(file.read_text(encoding="utf-8").splitlines())

    @classmethod
    def of(cls, lines: Iterable[str]) -> Self:
        names: dict[str, None] = {}
        by_import: dict[str, str] = {}  # what is one of these is asked for by mistake, however often
        for line in lines:
            words = [canonicalize_name(word) for word in line.partition("#")[0].split()]
            if words:
                names[words[0]] = None
                by_import |= dict.fromkeys(words[1:], words[0])
        return cls(tuple(name for name in names if name not in by_import), by_import)
