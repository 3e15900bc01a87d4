"""Pinned definitions: if a server changes a tool, that is a new version, which must be activated before it is called."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import ToolStatus

__all__ = ["Change", "Pinned", "appeared", "gone", "pinned"]


@dataclass(frozen=True, slots=True)
class Pinned:
    """A stored version, and the definition that it was made from, as text."""

    entry: ToolEntry
    definition: str
    was_active: bool = True
    """Whether it was ever active."""


@dataclass(frozen=True, slots=True)
class Change:
    """The versions of a tool to write, and those to drop, which were never activated.

    `waiting` is the version with the server's definition, unless that is active.
    """

    write: tuple[Pinned, ...] = ()
    drop: tuple[str, ...] = ()
    waiting: str | None = None


def appeared(entry: ToolEntry, definition: str, *, waits: bool) -> Pinned:
    """The version of a newly listed tool. If it `waits`, it must be activated before it can be called."""
    if not waits:
        return Pinned(entry, definition)
    return Pinned(_with(entry, status=ToolStatus.INACTIVE), definition, was_active=False)


def pinned(definition: str, known: Mapping[str, Pinned], active: str, entry_of: Callable[[str], ToolEntry | None]) -> Change:
    """The change for a listed tool. `known` are its versions; `entry_of` makes an entry of a definition, or None if it no longer can.

    All versions follow changes to the registration of the server, but keep their definitions.
    """
    having = [version for version, old in known.items() if old.definition == definition]
    # A server whose definitions change each time must not fill the table.
    drop = tuple(version for version, old in known.items() if version != active and not old.was_active and version not in having)
    kept = {version: old for version, old in known.items() if version not in drop}
    write = tuple(one for version, old in kept.items() if (one := _renewed(old, version == active, entry_of)) is not None)
    if having:
        version = active if active in having else having[-1]
        return Change(write, drop, None if version == active and known[version].was_active else version)
    if (entry := entry_of(definition)) is None:
        return Change(write, drop)
    version = _following([*known])
    waiting = Pinned(_with(entry, version=version, status=ToolStatus.INACTIVE), definition, was_active=False)
    return Change((*write, waiting), drop, version)


def gone(active: Pinned) -> Pinned | None:
    """The version of a tool that is no longer listed; None if nothing changes."""
    if active.entry.manifest.status is not ToolStatus.ACTIVE:
        return None
    return Pinned(_with(active.entry, status=ToolStatus.UNAVAILABLE), active.definition)


def _renewed(old: Pinned, is_active: bool, entry_of: Callable[[str], ToolEntry | None]) -> Pinned | None:
    """None if it is unchanged."""
    was = old.entry.manifest
    status = ToolStatus.ACTIVE if is_active and was.status is ToolStatus.UNAVAILABLE else was.status
    now = _with(entry_of(old.definition) or old.entry, version=was.version, status=status)
    return Pinned(now, old.definition) if now != old.entry else None


def _with(entry: ToolEntry, **fields: object) -> ToolEntry:
    """The entry with these fields of its manifest changed."""
    return entry.model_copy(update={"manifest": entry.manifest.model_copy(update=fields)})


def _following(versions: list[str]) -> str:
    """The next minor version of the highest."""
    major, minor = max(tuple(map(int, version.split("-")[0].split("+")[0].split(".")[:2])) for version in versions)
    return f"{major}.{minor + 1}.0"
