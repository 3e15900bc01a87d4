"""`registry.json` (seed 001 §2): `{"version": "2.0", "tools": [ToolManifest, …]}`."""

from pathlib import Path

from pydantic import JsonValue, ValidationError

from engine.registry.formats.document import Parsed, faults_of, members, read_object, unknown_fields
from engine.validation.references import SchemaNotFollowedError, written_out
from engine.validation.schemas import schema_faults
from toolagent.contracts.manifest import JsonSchema, ToolManifest
from toolagent.contracts.records import CatalogFault

__all__ = ["FILE_NAME", "parse"]

FILE_NAME = "registry.json"
_VERSIONS = ("2.0",)


def parse(path: Path) -> Parsed[ToolManifest]:
    """The tools of the file. The first of two tools with one id counts."""
    parsed = Parsed[ToolManifest]()
    document = read_object(path)
    tools = members(document, "tools", path.name) if isinstance(document, dict) else document
    if isinstance(tools, CatalogFault):
        return Parsed(faults=[tools], readable=False)
    if isinstance(document, dict) and document.get("version", "2.0") not in _VERSIONS:
        reason = f"Unknown format version {document['version']!r}; known: {', '.join(_VERSIONS)}. The entries were read as 2.0."
        parsed.faults.append(CatalogFault(file=path.name, field="$.version", reason=reason))
    for index, item in enumerate(tools):
        _take(parsed, path.name, f"$.tools[{index}]", item)
    return parsed


def _take(parsed: Parsed[ToolManifest], file: str, where: str, item: JsonValue) -> None:
    if isinstance(item, dict) and isinstance(tool_id := item.get("tool_id"), str):
        if tool_id in parsed.mentioned:
            parsed.faults.append(
                CatalogFault(file=file, field=f"{where}.tool_id", reason=f"There is already a tool {tool_id!r} in this file.")
            )
            return
        parsed.mentioned.add(tool_id)
    try:
        manifest = ToolManifest.model_validate(item)
    except ValidationError as error:
        parsed.faults.extend(faults_of(error, file, where))
        return
    usable, wrong = _checked(manifest, file, where)
    if wrong:
        parsed.faults.extend(wrong)
        return
    parsed.faults.extend(unknown_fields(manifest, item, file, where))
    parsed.entries[manifest.tool_id] = usable


def _checked(manifest: ToolManifest, file: str, where: str) -> tuple[ToolManifest, list[CatalogFault]]:
    """The manifest with its schemas' references written out, and what is wrong with them."""
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
    return manifest.model_copy(update=schemas), wrong
