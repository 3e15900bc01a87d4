"""`versions.json` (our own): `{"version": "1.0", "versions": {tool_id: [manifest with its "sources", …]}}`: all but the active version.

A local source names its archive in the content store: the folder belongs to the active version.
"""

from pathlib import Path

from pydantic import JsonValue

from engine.registry.formats.document import Parsed
from engine.registry.formats.registry_json import checked, dump_manifest
from engine.registry.formats.sources_json import dump_sources, take_sources
from engine.registry.formats.state import CatalogFormat, CatalogState, Document
from engine.registry.secret_vault import SecretVault
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import ToolManifest

FILE_NAME = "versions.json"
_VERSIONS = ("1.0",)


def parse(path: Path, vault: SecretVault) -> Parsed[ToolEntry]:
    """Parse the file, by `tool_id@version`. A raw entry includes its sources."""
    parsed = Parsed[ToolEntry](path.name, vault)
    for tool_id, items in parsed.open(path, "versions", dict[str, JsonValue], _VERSIONS).items():
        if not isinstance(items, list):
            parsed.fault(f"$.versions.{tool_id!a}", "A list of versions is expected here.")
            continue
        for index, item in enumerate(items):
            _take(parsed, f"$.versions.{tool_id}[{index}]", tool_id, item)
    return parsed


def dump(state: CatalogState) -> Document | None:
    file = state.files.get(FILE_NAME)
    shown: dict[str, list[JsonValue]] = {}
    order = {entry_id: place for place, entry_id in enumerate(file.entry_ids if file else ())}
    others = [kept for kept in state.versions if not kept.is_active]
    for kept in sorted(others, key=lambda kept: order.get(_id_of(kept.entry.manifest), len(order))):
        shown.setdefault(kept.entry.manifest.tool_id, []).append({**dump_manifest(kept), "sources": [*dump_sources(kept)]})
    if file is None and not shown:
        return None
    values: dict[str, JsonValue] = {tool_id: [*entries] for tool_id, entries in shown.items()}
    return {**(file.envelope if file else {"version": _VERSIONS[0]}), "versions": values}


def _id_of(manifest: ToolManifest) -> str:
    return f"{manifest.tool_id}@{manifest.version}"


def _take(parsed: Parsed[ToolEntry], where: str, tool_id: str, item: JsonValue) -> None:
    if not isinstance(item, dict) or not isinstance(items := item.get("sources", []), list):
        parsed.fault(where, "A manifest with a list of `sources` is expected here.")
        return
    clean = parsed.cleaned({**item, "sources": None}, tool_id, where)
    manifest = None if clean.refused else parsed.valid(ToolManifest.model_validate, clean.item, where)
    if manifest is None:
        return
    manifest, wrong = checked(manifest, parsed.file, where)
    name = _id_of(manifest)
    if wrong:
        parsed.faults += wrong
    elif manifest.tool_id != tool_id:
        parsed.fault(f"{where}.tool_id", f"It stands under {tool_id!a}, but says {manifest.tool_id!r}.")
    elif name in parsed.entries:
        parsed.fault(f"{where}.version", f"There is already a version {manifest.version}.")
    else:
        found = take_sources(parsed, items, tool_id, f"{where}.sources")
        parsed.note_misspelled(manifest, {**item, "sources": None}, where)
        raw = clean.item if isinstance(clean.item, dict) else {}
        parsed.mentioned[name] = None
        parsed.entries[name] = ToolEntry(manifest=manifest, sources=tuple(source for source, _ in found))
        # The sources come last, wherever the file has them.
        parsed.raws[name] = {**{key: value for key, value in raw.items() if key != "sources"}, "sources": [one for _, one in found]}


FORMAT = CatalogFormat(FILE_NAME, parse, dump)
