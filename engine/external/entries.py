"""Makes entries of the catalog from the untrusted descriptions of a table."""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import httpx
from pydantic import JsonValue, TypeAdapter, ValidationError

from engine.making.openapi.names import plain_word
from engine.validation.references import SchemaNotFollowedError, written_out
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.external_tables import LeftOutTool
from toolagent.contracts.manifest import PermissionClass, SemVer, SideEffectScope, ToolManifest, ToolStatus
from toolagent.contracts.sources import RemoteSource
from toolagent.core.failures import TableRefusedError
from toolagent.core.texts import well_formed
from toolagent.validation.schemas import schema_faults

MOST_TOOLS = 2_000
_MAX_SCHEMA = 64 * 1024
_LONGEST_ID = 128
_LONGEST = {"name": 200, "description": 4_000, "category": 64}
_MOST_TAGS = 20
_LETTER = re.compile(r"[a-z]")
_VERSION = TypeAdapter(SemVer)
_STATUSES = {"inactive": ToolStatus.INACTIVE, "staging": ToolStatus.INACTIVE, "building": ToolStatus.INACTIVE}


class NoTool(ValueError):
    """An entry of a table is no usable tool. The message says why."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table to read: `url` is where it was found, `home` the registered URL, `secret` the name of its key, if any."""

    source: str
    url: str
    home: str
    secret: str | None = None

    def secret_for(self, url: str) -> str | None:
        """The key for this URL: only for the registered server, not for others that the table names or redirects to."""
        return f"secret:{self.secret}" if self.secret and is_same_server(url, self.home) else None


@dataclass(frozen=True, slots=True)
class Listing:
    """The tools of a table, with unique ids, and the entries that were left out."""

    entries: tuple[ToolEntry, ...]
    left_out: tuple[LeftOutTool, ...] = ()


def tool_id(source: str, named: str) -> str:
    """`<source>:<id>`. Raises NoTool."""
    word = plain_word(named[: 2 * _LONGEST_ID])
    if not word:
        raise NoTool("Its id has neither letters nor digits.")
    return f"{source}:{word if _LETTER.match(word) else f't_{word}'}"[:_LONGEST_ID]


def listed_tool(table: Table, named: str, said: dict[str, JsonValue], call: RemoteSource | None) -> ToolEntry:
    """`said` has the fields of a manifest that the table has. Without `call`, the tool is listed but not callable. Raises NoTool."""
    identifier = tool_id(table.source, named)
    text = {field: well_formed(str(said.get(field) or ""))[:most].strip() for field, most in _LONGEST.items()}
    tags = said.get("tags")
    manifest = ToolManifest(
        tool_id=identifier,
        name=text["name"] or identifier,
        description=text["description"],
        category=text["category"] or "custom",
        version=_version(said.get("version")),
        tags=tuple(well_formed(tag)[:64] for tag in tags if isinstance(tag, str) and tag)[:_MOST_TAGS] if isinstance(tags, list) else (),
        input_schema=_schema(said, "input_schema"),
        output_schema=_schema(said, "output_schema"),
        status=ToolStatus.INACTIVE if call is None else _STATUSES.get(str(said.get("status")), ToolStatus.ACTIVE),
    )
    return owned(table, ToolEntry(manifest=manifest, sources=(call,) if call else ()))


def owned(table: Table, entry: ToolEntry) -> ToolEntry:
    """The entry with the rights of every tool of a table: external, never called twice. Raises NoTool."""
    rights = {
        "external_source": table.source,
        "group_ids": (),
        "permission_class": PermissionClass.EXTERNAL,
        "side_effect_scope": SideEffectScope.NETWORK,
        "idempotent": False,
    }
    changes: dict[str, object] = {**rights, "backend_runtime": "remote"}
    manifest = ToolManifest.model_validate({**entry.manifest.model_dump(), **changes})
    sources = tuple(
        source.model_copy(update={"table": table.source, "only_public": True})
        for source in entry.sources
        if isinstance(source, RemoteSource)
    )
    for source in sources:
        if not table.secret and source.traits.secrets:
            raise NoTool("It wants to be shown a key, and the table has none. Register the table with `api_key`.")
        if set(source.traits.secrets) - {table.secret}:
            raise NoTool("It names a secret that is not the table's.")
        if source.traits.secrets and not all(is_same_server(server, table.home) for server in source.traits.servers):
            raise NoTool(
                "It would show the table's key to another server. Give a `tools_url` at the server that it is called at, or no key."
            )
    return ToolEntry(manifest=manifest, sources=sources)


def left_out(entry: str, reason: object) -> LeftOutTool:
    return LeftOutTool(entry=entry[:128], reason=str(reason)[:500])


def require_few(count: int) -> None:
    """Raises TableRefusedError."""
    if count > MOST_TOOLS:
        raise TableRefusedError("tools_url", f"It lists {count} tools; at most {MOST_TOOLS} are taken. Give the URL of a part of it.")


def listing_of(found: Iterable[tuple[str, Callable[[], ToolEntry]]], unread: Iterable[LeftOutTool] = ()) -> Listing:
    """The tools of a table, from their names there and functions that make their entries. The first of several with one id counts."""
    kept: dict[str, ToolEntry] = {}
    faulty, repeated = [*unread], list[LeftOutTool]()
    for name, make in found:
        try:
            entry = make()
        except NoTool as reason:
            faulty.append(left_out(name, reason))
            continue
        identifier = entry.manifest.tool_id
        if identifier in kept:
            repeated.append(left_out(identifier, "The table has an earlier entry of this id."))
        kept.setdefault(identifier, entry)
    return Listing(tuple(kept.values()), (*faulty, *repeated))


def _version(said: JsonValue) -> str:
    try:
        return _VERSION.validate_python(said)
    except ValidationError:
        return "1.0.0"


def _schema(said: dict[str, JsonValue], which: str) -> JsonSchema:
    """Raises NoTool for one that cannot be used."""
    schema = said.get(which)
    if schema is None:
        return {}
    if not isinstance(schema, dict):
        raise NoTool(f"Its {which} is no object.")
    text = json.dumps(schema)
    if len(text) > _MAX_SCHEMA:
        raise NoTool(f"Its {which} has {len(text)} characters; at most {_MAX_SCHEMA} are taken.")
    if '"file-path"' in text:
        raise NoTool("It takes or gives files, which cannot be passed on to a table.")
    for fault in schema_faults(schema):
        raise NoTool(f"Its {which} is no JSON Schema: {fault.path}: {fault.message}")
    try:
        return written_out(schema)
    except SchemaNotFollowedError as error:
        raise NoTool(f"Its {which} cannot be used: {error}") from error


def is_same_server(one: str, other: str) -> bool:
    """Whether both URLs have the same scheme, host and port, as the HTTP client reads them."""
    try:
        first, second = httpx.URL(one), httpx.URL(other)
    except httpx.InvalidURL:
        return False
    return (first.scheme, first.raw_host, first.port) == (second.scheme, second.raw_host, second.port)
