"""The catalog and the queries of this folder, as the service has them."""

from dataclasses import dataclass
from pathlib import Path

import yaml
from pydantic import ConfigDict, TypeAdapter

from bench.search.distractors import distractors
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.contract import Contract, JsonSchema
from toolagent.contracts.manifest import ToolManifest

_HERE = Path(__file__).parent
# A comma in the wrong place makes a field of its own.
_STRICT = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class Query:
    """What somebody asks, and the ids of which one has to be found."""

    need: str
    tools: frozenset[str]
    language: str


def tools_asked_for() -> list[ToolManifest]:
    """Those that queries name, and the others of their kind."""
    lines = TypeAdapter(list[_Tool]).validate_python(yaml.safe_load((_HERE / "tools.yaml").read_text("utf-8")))
    return [_manifest(line) for line in lines]


def entries(size: int) -> list[ToolEntry]:
    """So many: the tools of `tools.yaml`, and distractors."""
    known = tools_asked_for()
    return [ToolEntry(manifest=manifest) for manifest in (*known, *distractors(size - len(known)))]


def labelled() -> list[Query]:
    lines = TypeAdapter(dict[str, list[_Line]]).validate_python(yaml.safe_load((_HERE / "queries.yaml").read_text("utf-8")))
    return [Query(line.need, line.tools, language) for language, of_language in lines.items() for line in of_language]


class _Line(Contract):
    model_config = _STRICT

    need: str
    tools: frozenset[str]


class _Tool(Contract):
    model_config = _STRICT

    id: str
    name: str
    description: str
    category: str
    tags: tuple[str, ...]
    params: dict[str, str]


def _manifest(line: _Tool) -> ToolManifest:
    properties: JsonSchema = {name: {"type": "string", "description": says} for name, says in line.params.items()}
    return ToolManifest(
        tool_id=line.id,
        name=line.name,
        description=line.description,
        category=line.category,
        tags=line.tags,
        input_schema={"type": "object", "properties": properties},
    )
