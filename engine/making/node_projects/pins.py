"""The versions that a lock of pnpm or yarn names, as npm takes them."""

import re
from collections import defaultdict
from collections.abc import Mapping

from engine.making.python_sources.projects import Table

_NAME = r"((?:@[\w.~-]{1,100}/)?[\w.~-]{1,100})"
_VERSION = r"(\d+\.\d+\.\d+[\w.+-]{0,100})"
_PINNED = {
    "pnpm-lock.yaml": re.compile(rf"^  ['\"]?/?{_NAME}@{_VERSION}(?:\([^\n]*\))?['\"]?:", re.MULTILINE),
    "yarn.lock": re.compile(rf"^\"?{_NAME}@[^\n]*:\n  version:? \"?{_VERSION}\"?$", re.MULTILINE),
}
LOCKS = tuple(_PINNED)
_RANGE = re.compile(r"[\^~<>=|\s\w.*+-]+")
_LOCAL = "-use.local"
_KINDS = ("dependencies", "devDependencies", "optionalDependencies")


def pins_of(name: str, text: str) -> Mapping[str, str]:
    """The version of each package of which the lock has one. `name` is that of the lock's file."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for package, version in _PINNED[name].findall(text):
        found[package].add(version)
    return {package: one for package, (one, *more) in found.items() if not more and not one.endswith(_LOCAL)}


def pinned(manifest: Table, pins: Mapping[str, str]) -> dict[str, object]:
    """The manifest with these versions. What it depends on itself must have the same version there as in `overrides`, or npm refuses."""
    own = {kind: manifest.table(kind).values for kind in _KINDS}
    fixed = {name for specs in own.values() for name, spec in specs.items() if not _RANGE.fullmatch(str(spec))}
    told: dict[str, object] = {
        kind: {name: pins.get(name, spec) if name not in fixed else spec for name, spec in specs.items()}
        for kind, specs in own.items()
        if specs
    }
    overrides = {**{name: version for name, version in pins.items() if name not in fixed}, **manifest.table("overrides").values}
    return {**manifest.values, **told, "overrides": overrides}
