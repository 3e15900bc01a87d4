"""Installs a Node.js project's dependencies: by its own lock if that works, else in versions that npm chooses now."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from engine.making.failures import LockFailed, NotWanted
from engine.making.node_projects.manifests import MANIFEST, kept_of, manifest_at
from engine.making.node_projects.npm_runs import NpmRuns
from engine.making.node_projects.pins import LOCKS, pins_of
from engine.making.node_projects.plain_files import MOST_BYTES, content_of, new_folder, text_of, write_json
from engine.making.node_projects.workspaces import Layout, Package
from engine.making.python_sources.projects import Table
from engine.making.repositories.packaging import Room
from engine.making.uv.outages import is_outage
from engine.runtimes.environments.dependencies import Dependencies, Kind
from engine.runtimes.environments.environments import Environment, ScriptEnvironments
from engine.runtimes.environments.failures import ScriptFailure
from engine.runtimes.runtime import Progress
from toolagent.contracts.sources import ScriptLanguage

_LOCK = "package-lock.json"
_OTHERS = ("pnpm-lock.yaml", "yarn.lock", "bun.lock", "bun.lockb")
_TOLD = 300


@dataclass(frozen=True, slots=True)
class OwnLock:
    """The lock that a project brings. If it has none of its own, `text` is empty and `why_none` begins a sentence with the reason.

    `pins` are versions of a lock of another program.
    """

    text: str = ""
    why_none: str = ""
    pins: Mapping[str, str] = field(default_factory=dict[str, str])


class NodeLocks:
    def __init__(self, runs: NpmRuns, environments: ScriptEnvironments) -> None:
        self._runs, self._environments = runs, environments

    async def install(
        self, lock: OwnLock, work: Path, into: Path, layout: Layout, packed: Path, tool_name: str, progress: Progress
    ) -> tuple[Environment, tuple[str, ...]]:
        """Writes manifest and lock to `into` and installs them; returns notes too. Raises LockFailed, ScriptFailure, NotWanted."""
        manifest, notes = layout.project.manifest, list[str]()
        if lock.text:
            await asyncio.to_thread(_write, into, kept_of(manifest, with_lock=True), lock.text)
            try:
                return await self._environment(into, (), tool_name, progress), ()
            except ScriptFailure as failure:
                if is_outage(failure):
                    raise
                notes.append(f"Its package-lock.json cannot be installed, so its versions were chosen now: {failure.message[:_TOLD]}")
        progress("locking what the project depends on")
        archives = await asyncio.to_thread(_brought, packed, into, layout.installed)
        wanted = _with_siblings(kept_of(manifest, with_lock=False), layout.installed)
        place = await asyncio.to_thread(_laid_out, work, into, wanted, archives)
        what, pins = "What the project depends on cannot be locked", lock.pins
        installed = await self._runs.install(work, place, what, "--package-lock-only", pins=pins)
        if not lock.text:
            notes.append(_chosen_now(lock, installed.unpinned))
        chosen, written = await asyncio.to_thread(lambda: (text_of(place / _LOCK), manifest_at(place / MANIFEST)))
        wanted = {**written.values}
        if installed.workarounds:
            # Peer dependencies that do not fit are removed, because npm would check them again and refuse.
            chosen, wanted = _without_peers(chosen), {name: value for name, value in wanted.items() if name != "peerDependencies"}
        await asyncio.to_thread(_write, into, wanted, chosen)
        return await self._environment(into, archives, tool_name, progress), (*notes, *installed.workarounds)

    async def _environment(self, into: Path, archives: Sequence[str], tool_name: str, progress: Progress) -> Environment:
        contents = await asyncio.to_thread(lambda: {name: (into / name).read_bytes() for name in (_LOCK, MANIFEST, *archives)})
        progress("installing what the project depends on")
        return await self._environments.ensure(Dependencies(ScriptLanguage.NODEJS, Kind.NPM_LOCK, contents), tool_name, progress)


def own_lock(source: Path, layout: Layout) -> OwnLock:
    """The project's lock, from a copy in which npm has not written one yet. Blocks."""
    folder = layout.project.folder
    is_alone = not layout.installed and not layout.project.manifest.values.get("workspaces") and layout.root == folder
    if is_alone:
        with suppress(NotWanted):
            return OwnLock(text_of(source / folder / _LOCK))
    there = [name for name in (_LOCK, *_OTHERS) for place in (folder, layout.root) if (source / place / name).is_file()]
    if not there:
        return OwnLock(why_none="The project has no package-lock.json of its own")
    why_none = f"It is locked by {there[0]}, which {'is for a whole workspace' if there[0] == _LOCK else 'npm does not read'}"
    if there[0] not in LOCKS:
        return OwnLock(why_none=why_none)
    path = next(path for place in (folder, layout.root) if (path := source / place / there[0]).is_file())
    with suppress(NotWanted):
        return OwnLock(why_none=why_none, pins=pins_of(path.name, text_of(path)))
    return OwnLock(why_none=why_none)


def _chosen_now(lock: OwnLock, unpinned: str) -> str:
    """A note for a project that npm has no lock of. `unpinned` is why npm could not install the versions of its other lock."""
    chosen = f"{lock.why_none}: its versions were chosen now, by npm"
    if unpinned:
        return f"{chosen}, and none is taken from that lock, because npm could not install them: {unpinned[:_TOLD]}"
    return f"{chosen}, those of that lock where they could be had." if lock.pins else f"{chosen}."


def _brought(packed: Path, into: Path, packages: Sequence[Package]) -> tuple[str, ...]:
    """Copies the archives of packages of the same repository beside the manifest. Raises LockFailed."""
    size = 0
    for package in packages:
        try:
            content = content_of(packed / package.archive)
        except (OSError, NotWanted) as error:
            raise LockFailed(f"{package.name}, which the project depends on, cannot be packed: {error}") from error
        size += len(content)
        if len(content) > MOST_BYTES or size > Room().size:
            raise LockFailed(
                f"{package.name}, which the project depends on, is larger than {MOST_BYTES >> 20} MiB when packed, or all are."
            )
        (into / package.archive).write_bytes(content)
        (into / package.archive).chmod(0o644)
    return tuple(sorted(package.archive for package in packages))


def _with_siblings(own: Mapping[str, object], packages: Sequence[Package]) -> dict[str, object]:
    if not packages:
        return {**own}
    table, names = Table(own), {package.name for package in packages}
    told: dict[str, object] = {
        kind: {name: spec for name, spec in table.table(kind).values.items() if name not in names}
        for kind in ("dependencies", "optionalDependencies", "peerDependencies")
    }
    told["dependencies"] = {**table.table("dependencies").values, **{package.name: f"file:{package.archive}" for package in packages}}
    # The packages depend on unpublished versions of each other.
    told["overrides"] = {**table.table("overrides").values, **{name: f"${name}" for name in names}}
    return {**own, **told}


def _laid_out(work: Path, into: Path, wanted: Mapping[str, object], archives: Sequence[str]) -> Path:
    place = new_folder(work, "locking")
    for name in archives:
        (place / name).write_bytes((into / name).read_bytes())
    write_json(place / MANIFEST, wanted)
    return place


def _without_peers(lock: str) -> str:
    """Raises LockFailed."""
    try:
        read = cast("dict[str, dict[str, dict[str, object]]]", json.loads(lock))
        for package in read["packages"].values():
            package.pop("peerDependencies", None)
            package.pop("peerDependenciesMeta", None)
        return json.dumps(read)
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
        raise LockFailed(f"The lock that npm wrote cannot be read: {error}") from error


def _write(into: Path, manifest: Mapping[str, object], lock: str) -> None:
    for name, text in ((MANIFEST, json.dumps(manifest)), (_LOCK, lock)):
        (into / name).write_text(text)
        (into / name).chmod(0o644)
