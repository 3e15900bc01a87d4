"""Definitions that are pinned: what a server changes about a tool is a new version, which nobody gets before it is activated."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import ToolStatus

__all__ = ["Change", "Pinned", "appeared", "gone", "pinned"]


@dataclass(frozen=True, slots=True)
class Pinned:
    """A version as it is kept, and the definition that it was made of, as text."""

    entry: ToolEntry
    definition: str
    was_active: bool = True
    """At some time."""


@dataclass(frozen=True, slots=True)
class Change:
    """What is to be written of a tool, and which versions go that nobody has ever activated.

    `waiting` is the version that has the server's definition, where it is not the active one, or was never activated.
    """

    write: tuple[Pinned, ...] = ()
    drop: tuple[str, ...] = ()
    waiting: str | None = None


def appeared(entry: ToolEntry, definition: str, *, waits: bool) -> Pinned:
    """Of a tool that its server lists for the first time. One that `waits` cannot be called before it is activated."""
    if not waits:
        return Pinned(entry, definition)
    manifest = entry.manifest.model_copy(update={"status": ToolStatus.INACTIVE})
    return Pinned(entry.model_copy(update={"manifest": manifest}), definition, was_active=False)


def pinned(definition: str, known: Mapping[str, Pinned], active: str, entry_of: Callable[[str], ToolEntry | None]) -> Change:
    """Of a tool that its server lists. `known` are its versions; `entry_of` makes the entry of a definition, None where it cannot any more.

    Every version follows what was registered of the server; none its definition.
    """
    having = [version for version, old in known.items() if old.definition == definition]
    # A server that says something else each time must not fill the table.
    drop = tuple(version for version, old in known.items() if version != active and not old.was_active and version not in having)
    kept = {version: old for version, old in known.items() if version not in drop}
    write = tuple(one for version, old in kept.items() if (one := _renewed(old, version == active, entry_of)) is not None)
    if having:
        version = active if active in having else having[-1]
        return Change(write, drop, None if version == active and known[version].was_active else version)
    if (entry := entry_of(definition)) is None:
        return Change(write, drop)
    version = _following([*known])
    manifest = entry.manifest.model_copy(update={"version": version, "status": ToolStatus.INACTIVE})
    return Change((*write, Pinned(entry.model_copy(update={"manifest": manifest}), definition, was_active=False)), drop, version)


def gone(active: Pinned) -> Pinned | None:
    """Of a tool that its server does not list any more; None where nothing changes."""
    manifest = active.entry.manifest
    if manifest.status is not ToolStatus.ACTIVE:
        return None
    away = manifest.model_copy(update={"status": ToolStatus.UNAVAILABLE})
    return Pinned(active.entry.model_copy(update={"manifest": away}), active.definition)


def _renewed(old: Pinned, is_active: bool, entry_of: Callable[[str], ToolEntry | None]) -> Pinned | None:
    """None where it is as it was."""
    was = old.entry.manifest
    status = ToolStatus.ACTIVE if is_active and was.status is ToolStatus.UNAVAILABLE else was.status
    entry = entry_of(old.definition) or old.entry
    manifest = entry.manifest.model_copy(update={"version": was.version, "status": status})
    now = entry.model_copy(update={"manifest": manifest})
    return Pinned(now, old.definition) if now != old.entry else None


def _following(versions: list[str]) -> str:
    """The next minor version of the highest."""
    major, minor = max(tuple(map(int, version.split("-")[0].split("+")[0].split(".")[:2])) for version in versions)
    return f"{major}.{minor + 1}.0"
