"""Writes versions of tools with their sources, in the caller's transaction."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from pydantic import JsonValue
from sqlalchemy import bindparam, delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from engine.store.clock import now, timestamp
from engine.store.events import event_row
from engine.store.file_references import hold_files, holder_of_version, named_files
from engine.store.rows.upserts import insert_new, upsert_all
from engine.store.tables import events, file_references, sources, tool_versions, tools
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.records import Event, EventType

_OF_VERSION = delete(sources).filter_by(tool_id=bindparam("of_tool"), version=bindparam("of_version"))
_ACTIVATED = (
    update(tool_versions)
    .where(tool_versions.c.tool_id == bindparam("of_tool"), tool_versions.c.version == bindparam("of_version"))
    .values(activated_at=bindparam("moment"))
)
_OF_HOLDER = delete(file_references).where(file_references.c.holder == bindparam("of_holder"))


@dataclass(frozen=True, slots=True)
class NewVersion:
    """A version. If it comes from a file, `raw` and `source_raws` are its entries there as JSON text: one for each source, or none."""

    entry: ToolEntry
    raw: str | None = None
    source_raws: tuple[str, ...] = ()

    @property
    def manifest(self) -> ToolManifest:
        return self.entry.manifest


async def write_versions(connection: AsyncConnection, new: Sequence[NewVersion]) -> None:
    """Write the versions, their sources, and references to the files that these name. A version without `raw` keeps the stored one."""
    moment = timestamp()
    rows: dict[bool, list[dict[str, object]]] = {True: [], False: []}
    for version in new:
        manifest = version.manifest
        row: dict[str, object] = {"tool_id": manifest.tool_id, "version": manifest.version, "created_at": moment}
        row["manifest"] = manifest.model_dump_json(by_alias=True)
        rows[version.raw is not None].append(row | ({} if version.raw is None else {"raw": version.raw}))
    for some in rows.values():
        await upsert_all(connection, tool_versions, some, once=("created_at",))
    await _write_sources(connection, new)


async def put_versions(
    connection: AsyncConnection,
    new: Sequence[NewVersion],
    origin: str,
    known: Collection[str] = (),
    waiting: Collection[str] | None = None,
) -> None:
    """Write versions as the active ones of their tools, with the events of that. `known` are the ids of tools that are there.

    `waiting` are the ids of tools that nobody has activated yet, where tools may wait: then the events also name the status.
    """
    manifests = [version.manifest for version in new]
    await upsert_all(connection, tools, [tool_row(manifest, origin) for manifest in manifests])
    await write_versions(connection, new)
    await mark_activated(connection, *((one.tool_id, one.version) for one in manifests if one.tool_id not in (waiting or ())))
    said: list[dict[str, object]] = []
    for one in manifests:
        status: dict[str, JsonValue] = {} if waiting is None else {"status": one.status.value}
        kind = EventType.TOOL_UPDATED if one.tool_id in known else EventType.TOOL_ADDED
        said.append(tool_event(one.tool_id, kind, {"version": one.version, "origin": origin, **status}))
    await insert_new(connection, events, said)


async def mark_activated(connection: AsyncConnection, *versions: tuple[str, str]) -> None:
    """Note that these versions became active now. A rollback follows the order of these times."""
    if versions:
        moment = timestamp()
        rows = [{"of_tool": tool_id, "of_version": version, "moment": moment} for tool_id, version in versions]
        await connection.execute(_ACTIVATED, rows)


async def _write_sources(connection: AsyncConnection, new: Sequence[NewVersion]) -> None:
    rows = [row for version in new for row in await _source_rows(connection, version)]
    keys = [(version.manifest.tool_id, version.manifest.version) for version in new]
    if keys:
        await connection.execute(_OF_VERSION, [{"of_tool": tool_id, "of_version": version} for tool_id, version in keys])
        await connection.execute(_OF_HOLDER, [{"of_holder": holder_of_version(tool_id, version)} for tool_id, version in keys])
    if rows:
        await connection.execute(insert(sources), rows)
    for row in rows:
        if files := named_files(str(row["source"])):
            await hold_files(connection, holder_of_version(str(row["tool_id"]), str(row["version"])), files)


async def _source_rows(connection: AsyncConnection, version: NewVersion) -> list[dict[str, object]]:
    manifest = version.manifest
    texts = [source.model_dump_json() for source in version.entry.sources]
    raws: Sequence[str | None] = version.source_raws
    if len(raws) != len(texts):
        said = select(sources.c.source, sources.c.raw).filter_by(tool_id=manifest.tool_id, version=manifest.version)
        known = {text: raw for text, raw in (await connection.execute(said)).all()}
        raws = [known.get(text) for text in texts]
    return [
        {"tool_id": manifest.tool_id, "version": manifest.version, "position": position, "source": text, "raw": raw}
        for position, (text, raw) in enumerate(zip(texts, raws, strict=True))
    ]


def tool_row(manifest: ToolManifest, origin: str) -> dict[str, object]:
    """The row of a tool from this origin, with this version as the active one."""
    return {
        "tool_id": manifest.tool_id,
        "active_version": manifest.version,
        "category": manifest.category,
        "origin": origin,
        "removed_at": None,
        "updated_at": timestamp(),
    }


async def make_active(connection: AsyncConnection, manifest: ToolManifest, before: str, **more: JsonValue) -> None:
    """Make this version the active one, in place of `before`. Calls that name no version get it."""
    tool_id, version = manifest.tool_id, manifest.version
    values = {"active_version": version, "category": manifest.category, "updated_at": timestamp()}
    await connection.execute(update(tools).filter_by(tool_id=tool_id).values(**values))
    await say(connection, tool_id, EventType.TOOL_UPDATED, {"version": version, "active_version": version, "before": before, **more})


async def say(connection: AsyncConnection, tool_id: str, kind: EventType, details: dict[str, JsonValue]) -> None:
    """Write the event in the transaction of the change: both are committed, or neither."""
    await insert_new(connection, events, [tool_event(tool_id, kind, details)])


def tool_event(tool_id: str, kind: EventType, details: dict[str, JsonValue]) -> dict[str, object]:
    at = now()
    return event_row(Event(event_id=f"{tool_id}:{kind.value}:{timestamp(at)}", event_type=kind, tool_id=tool_id, at=at, details=details))
