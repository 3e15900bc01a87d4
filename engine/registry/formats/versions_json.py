"""`versions.json` (our own): `{"version": "1.0", "versions": {tool_id: [manifest with its "sources", …]}}`, all but the active versions.

A local source here names its project in the content store: the folder belongs to the active version.
"""

from pathlib import Path

from pydantic import JsonValue, ValidationError

from engine.registry.formats.document import Parsed, cleaned, faults_of, misspelled_fields
from engine.registry.formats.registry_json import checked, dump_manifest
from engine.registry.formats.sources_json import dump_sources, take_sources
from engine.registry.formats.state import CatalogFormat, CatalogState, Document
from engine.registry.secret_vault import SecretVault
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.records import CatalogFault

FILE_NAME = "versions.json"
_VERSIONS = ("1.0",)


def parse(path: Path, vault: SecretVault) -> Parsed[ToolEntry]:
    """By `tool_id@version`; a raw entry is the object with its sources."""
    parsed = Parsed[ToolEntry]()
    for tool_id, items in parsed.open(path, "versions", dict[str, JsonValue], vault, _VERSIONS).items():
        if not isinstance(items, list):
            reason = "A list of versions is expected here."
            parsed.faults.append(CatalogFault(file=path.name, field=f"$.versions.{tool_id!a}", reason=reason))
            continue
        for index, item in enumerate(items):
            _take(parsed, path.name, f"$.versions.{tool_id}[{index}]", tool_id, item, vault)
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


def _take(parsed: Parsed[ToolEntry], file: str, where: str, tool_id: str, item: JsonValue, vault: SecretVault) -> None:
    if not isinstance(item, dict) or not isinstance(items := item.get("sources", []), list):
        parsed.faults.append(CatalogFault(file=file, field=where, reason="A manifest with a list of `sources` is expected here."))
        return
    clean = cleaned({**item, "sources": None}, tool_id, file, where, vault)
    parsed.faults += clean.faults
    if clean.refused:
        return
    try:
        manifest = ToolManifest.model_validate(clean.item)
    except ValidationError as error:
        parsed.faults.extend(faults_of(error, file, where))
        return
    manifest, wrong = checked(manifest, file, where)
    if not wrong and manifest.tool_id != tool_id:
        wrong = [CatalogFault(file=file, field=f"{where}.tool_id", reason=f"It stands under {tool_id!a}, but says {manifest.tool_id!r}.")]
    if not wrong and _id_of(manifest) in parsed.entries:
        wrong = [CatalogFault(file=file, field=f"{where}.version", reason=f"There is already a version {manifest.version}.")]
    if wrong:
        parsed.faults.extend(wrong)
        return
    found, faults = take_sources(items, tool_id, file, f"{where}.sources", vault)
    parsed.faults += [*faults, *misspelled_fields(manifest, {**item, "sources": None}, file, where)]
    entry = clean.item if isinstance(clean.item, dict) else {}
    raw: dict[str, JsonValue] = {key: value for key, value in entry.items() if key != "sources"}
    parsed.mentioned[_id_of(manifest)] = None
    parsed.entries[_id_of(manifest)] = ToolEntry(manifest=manifest, sources=tuple(source for source, _ in found))
    parsed.raws[_id_of(manifest)] = {**raw, "sources": [one for _, one in found]}


FORMAT = CatalogFormat(FILE_NAME, parse, dump)
