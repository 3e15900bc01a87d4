"""`registry.json`: `{"version": "2.0", "tools": [ToolManifest, …]}`, the active version of each tool."""

import json
from functools import lru_cache
from pathlib import Path

from pydantic import JsonValue, ValidationError

from engine.registry.formats.document import Parsed, faults_of, misspelled_fields
from engine.registry.formats.overlay import overlaid, written
from engine.registry.formats.state import CatalogFormat, CatalogState, Document, KeptVersion, in_order
from engine.registry.secret_vault import SecretVault
from engine.validation.references import SchemaNotFollowedError, written_out
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.records import CatalogFault
from toolagent.validation.schemas import schema_faults
from toolagent.validation.tool_rules import faults_of_test_mode

FILE_NAME = "registry.json"
_VERSIONS = ("2.0",)
_ALWAYS = frozenset(
    {"tool_id", "name", "version", "category", "description", "backend_runtime", "group_ids", "input_schema", "output_schema"}
    | {"stream_support", "status"}
)


def parse(path: Path, vault: SecretVault) -> Parsed[ToolManifest]:
    """Parse the file. The first of two tools with one id counts."""
    parsed = Parsed[ToolManifest](path.name, vault)
    for index, item in enumerate(parsed.open(path, "tools", list[JsonValue], _VERSIONS)):
        _take(parsed, f"$.tools[{index}]", item)
    return parsed


def dump(state: CatalogState) -> Document:
    """The active version of each tool."""
    file = state.files.get(FILE_NAME)
    envelope = file.envelope if file else {"version": _VERSIONS[0]}
    return {**envelope, "tools": [dump_manifest(kept) for _, kept in in_order(state.active(), file)]}


def dump_manifest(kept: KeptVersion) -> dict[str, JsonValue]:
    """The manifest as in its file, except for changes. The backend runtime follows from the source and is left out."""
    manifest = kept.entry.manifest
    if isinstance(kept.raw, dict):
        try:
            before, _ = checked(ToolManifest.model_validate(kept.raw), FILE_NAME, "$")
        except ValidationError:  # written by another release
            return {**kept.raw, **written(manifest, _ALWAYS)}
        return overlaid(kept.raw, before, manifest, without=("backend_runtime",))
    return written(manifest, _ALWAYS)


def checked(manifest: ToolManifest, file: str, where: str) -> tuple[ToolManifest, list[CatalogFault]]:
    """The manifest with references in its schemas resolved, and faults of the schemas and of the test mode."""
    schemas: dict[str, JsonSchema] = {"input_schema": manifest.input_schema, "output_schema": manifest.output_schema}
    wrong: list[CatalogFault] = []
    for name, schema in schemas.items():
        found = [(fault.path, fault.message) for fault in schema_faults(schema)]
        if not found:
            try:
                schemas[name] = written_out(schema)
            except SchemaNotFollowedError as error:
                found = [(error.path, str(error))]
        wrong += [CatalogFault(file=file, field=f"{where}.{name}{path.removeprefix('$')}", reason=reason) for path, reason in found]
    followed = manifest.model_copy(update=schemas)
    for fault in () if wrong else faults_of_test_mode(followed):
        wrong.append(CatalogFault(file=file, field=f"{where}.test_mode{fault.path.removeprefix('$')}", reason=fault.message))
    return followed, wrong


def _take(parsed: Parsed[ToolManifest], where: str, item: JsonValue) -> None:
    tool_id = item.get("tool_id") if isinstance(item, dict) else None
    if isinstance(tool_id, str):
        if tool_id in parsed.mentioned:
            parsed.fault(f"{where}.tool_id", f"There is already a tool {tool_id!r} in this file.")
            return
        parsed.mentioned[tool_id] = None
    clean = parsed.cleaned(item, str(tool_id), where)
    if clean.refused:
        return
    usable, faults = _understood(json.dumps(clean.item))
    for fault in faults:
        parsed.fault(f"{where}{fault.field}", fault.reason)
    if usable is not None:
        parsed.entries[usable.tool_id] = usable
        parsed.raws[usable.tool_id] = clean.item


# Cached, because an edit of one entry imports thousands of others again.
@lru_cache(maxsize=16_384)
def _understood(text: str) -> tuple[ToolManifest | None, tuple[CatalogFault, ...]]:
    """The manifest of an entry, if usable, and its faults, whose fields are relative to the entry."""
    item: JsonValue = json.loads(text)
    try:
        manifest = ToolManifest.model_validate(item)
    except ValidationError as error:
        return None, tuple(faults_of(error, FILE_NAME, ""))
    usable, wrong = checked(manifest, FILE_NAME, "")
    return (None, tuple(wrong)) if wrong else (usable, tuple(misspelled_fields(manifest, item, FILE_NAME, "")))


FORMAT = CatalogFormat(FILE_NAME, parse, dump)
