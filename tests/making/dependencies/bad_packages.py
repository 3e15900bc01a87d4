"""A test index with packages that machine-written code must not depend on, and one permitted package."""

from datetime import datetime, timedelta

from tests.making.dependencies.test_gate import NEAR, YOUNG
from toolagent.testing.servers.index_packages import IndexedPackage, IndexPackages, Release

__all__ = ["HONEST", "bad_packages"]

HONEST = "word-parts"

_PARTS = '''\
"""Takes texts apart."""


def parts(text: str) -> list[str]:
    return text.lower().split()
'''


def bad_packages(now: datetime) -> IndexPackages:
    """The packages; the index has those that exist. `now` decides their age."""
    old, new = now - timedelta(days=400), now - timedelta(days=2)
    honest = IndexedPackage(name=HONEST, releases=(Release(version="1.0", uploaded=old, modules={"word_parts.py": _PARTS}),))
    near = (IndexedPackage(name=name, releases=(Release(version="1.0", uploaded=old),)) for name in NEAR)
    young = (IndexedPackage(name=name, releases=(Release(version="1.0", uploaded=new),)) for name in YOUNG)
    return IndexPackages(packages=(*near, *young, honest))
