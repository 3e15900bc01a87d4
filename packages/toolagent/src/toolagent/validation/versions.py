"""Versions and the ranges that calls may name, by the rules of npm (`^ ~ >= <`, `||`, `x`)."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

import semantic_version

__all__ = ["NoSuchVersion", "NotARangeError", "best_of", "is_exact", "newest_first", "next_patch"]

_EXACT = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")


class NotARangeError(ValueError):
    """The text is neither a version nor a range."""


@dataclass(frozen=True, slots=True)
class NoSuchVersion:
    """The tool has no matching version. `versions` are all its versions, the newest first; `callable` those that may be called."""

    versions: tuple[str, ...]
    callable: tuple[str, ...]
    active: str


def is_exact(wanted: str) -> bool:
    return _EXACT.fullmatch(wanted) is not None


def best_of(wanted: str, versions: Collection[str]) -> str | None:
    """The highest version in a range. Pre-releases only if the range names one of the same version. Raises NotARangeError."""
    try:
        spec = semantic_version.NpmSpec(wanted.strip())
    except ValueError as error:
        raise NotARangeError(f"{wanted!r} is neither a version (1.2.3) nor a range (^1.2, ~1.2.3, >=1.2 <2).") from error
    fitting = [(parsed, version) for version in versions if (parsed := _parsed(version)) is not None and spec.match(parsed)]
    return max(fitting)[1] if fitting else None


def newest_first(versions: Iterable[str]) -> tuple[str, ...]:
    """Versions that SemVer cannot order come last."""
    parsed = {version: _parsed(version) for version in versions}
    ordered = sorted((one, version) for version, one in parsed.items() if one)
    return (*(version for _, version in reversed(ordered)), *sorted(version for version, one in parsed.items() if one is None))


def next_patch(versions: Iterable[str]) -> str:
    """The lowest patch version above all of these."""
    known = [one for one in map(_parsed, versions) if one is not None]
    return str(max(known, default=semantic_version.Version("1.0.0")).next_patch())


def _parsed(version: str) -> semantic_version.Version | None:
    try:
        return semantic_version.Version(version)
    except ValueError:  # leading zeros: such a version can be pinned, but not compared
        return None
