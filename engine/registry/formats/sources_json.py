"""`sources.json`: `{"sources": {tool_id: [ToolSource, …]}}`, of the active version of each tool."""

from pathlib import Path
from typing import Any

from pydantic import JsonValue, TypeAdapter, ValidationError

from engine.registry.formats.document import Parsed
from engine.registry.formats.overlay import overlaid, written
from engine.registry.formats.state import CatalogFormat, CatalogState, Document, KeptVersion, in_order
from engine.registry.secret_vault import SecretVault
from toolagent.contracts.sources import ToolSource
from toolagent_service.calls.container_names import misnamed

FILE_NAME = "sources.json"
_SOURCE: TypeAdapter[ToolSource] = TypeAdapter(ToolSource)
_ALWAYS = frozenset({"type", "endpoint_path", "http_method"})


def parse(path: Path, vault: SecretVault) -> Parsed[tuple[ToolSource, ...]]:
    """Parse the sources of each tool. A faulty source does not affect the others."""
    parsed = Parsed[tuple[ToolSource, ...]](path.name, vault)
    for tool_id, items in parsed.open(path, "sources", dict[str, JsonValue]).items():
        where = f"$.sources.{tool_id}"
        if not tool_id.isprintable():
            parsed.fault("$.sources", f"{tool_id!a} is no id of a tool.")
            continue
        parsed.mentioned[tool_id] = None
        if not isinstance(items, list):
            parsed.fault(where, "A list of sources is expected here.")
            continue
        found = take_sources(parsed, items, tool_id, where)
        parsed.entries[tool_id] = tuple(source for source, _ in found)
        parsed.raws[tool_id] = [raw for _, raw in found]
    return parsed


def take_sources(parsed: Parsed[Any], items: list[JsonValue], tool_id: str, where: str) -> list[tuple[ToolSource, JsonValue]]:
    """The usable sources of a list, each with what it was read from. Notes what is wrong with the others."""
    found: list[tuple[ToolSource, JsonValue]] = []
    for index, item in enumerate(items):
        place = f"{where}[{index}]"
        clean = parsed.cleaned(item, tool_id, place)
        source = None if clean.refused else parsed.valid(_SOURCE.validate_python, _without_empty_key(clean.item), place)
        if source is None:
            continue
        if (wrong := misnamed(source)) is not None:
            parsed.fault(f"{place}.{wrong[0]}", wrong[1])
            continue
        parsed.note_misspelled(source, clean.item, place)
        found.append((source, clean.item))
    return found


def dump(state: CatalogState) -> Document:
    """Leaves out tools without sources, unless the file has them."""
    file = state.files.get(FILE_NAME)
    known = set(file.entry_ids) if file else set[str]()
    shown = {tool_id: kept for tool_id, kept in state.active().items() if kept.entry.sources or tool_id in known}
    return {**(file.envelope if file else {}), "sources": {tool_id: dump_sources(kept) for tool_id, kept in in_order(shown, file)}}


def dump_sources(kept: KeptVersion) -> list[JsonValue]:
    """The sources as in the file, except for changes. Only pinned ones name their archives."""
    return [_dumped(source, raw, pinned=kept.pinned) for source, raw in zip(kept.entry.sources, kept.source_raws, strict=True)]


def _dumped(source: ToolSource, raw: JsonValue, *, pinned: bool) -> JsonValue:
    shown = _written(source, raw)
    if pinned and source.archive is not None:
        shown["content"] = source.archive
    return shown


def _written(source: ToolSource, raw: JsonValue) -> dict[str, JsonValue]:
    if isinstance(raw, dict):
        try:
            before = _SOURCE.validate_python(_without_empty_key(raw))
        except ValidationError:  # written by another release
            return written(source, _ALWAYS, without=("content",))
        if type(before) is type(source):
            return overlaid(raw, before, source, without=("content",))
    return written(source, _ALWAYS, without=("content",))


def _without_empty_key(item: JsonValue) -> JsonValue:
    """Removes an empty key."""
    return {key: value for key, value in item.items() if key != "remote_api_key" or value != ""} if isinstance(item, dict) else item


FORMAT = CatalogFormat(FILE_NAME, parse, dump)
