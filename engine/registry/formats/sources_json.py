"""`sources.json` (seed 001 §3): `{"sources": {tool_id: [ToolSource, …]}}`."""

from pathlib import Path

from pydantic import JsonValue, TypeAdapter, ValidationError

from engine.registry.formats.document import Parsed, faults_of, read_object, unknown_fields
from toolagent.contracts.records import CatalogFault
from toolagent.contracts.sources import ToolSource

__all__ = ["FILE_NAME", "parse"]

FILE_NAME = "sources.json"
_SOURCE: TypeAdapter[ToolSource] = TypeAdapter(ToolSource)


def parse(path: Path) -> Parsed[tuple[ToolSource, ...]]:
    """The sources of each tool; of a tool with a faulty source the others count."""
    document = read_object(path)
    if isinstance(document, CatalogFault):
        return Parsed(faults=[document], readable=False)
    sources = document.get("sources")
    if not isinstance(sources, dict):
        return Parsed(faults=[CatalogFault(file=path.name, field="$.sources", reason="An object is expected here.")], readable=False)
    parsed = Parsed[tuple[ToolSource, ...]]()
    for tool_id, items in sources.items():
        parsed.mentioned.add(tool_id)
        where = f"$.sources.{tool_id}"
        if isinstance(items, list):
            parsed.entries[tool_id] = tuple(_sources(parsed, path.name, where, items))
        else:
            parsed.faults.append(CatalogFault(file=path.name, field=where, reason="A list of sources is expected here."))
    return parsed


def _sources(parsed: Parsed[tuple[ToolSource, ...]], file: str, where: str, items: list[JsonValue]) -> list[ToolSource]:
    found: list[ToolSource] = []
    for index, item in enumerate(items):
        try:
            source = _SOURCE.validate_python(item)
        except ValidationError as error:
            parsed.faults.extend(faults_of(error, file, f"{where}[{index}]"))
            continue
        parsed.faults.extend(unknown_fields(source, item, file, f"{where}[{index}]"))
        found.append(source)
    return found
