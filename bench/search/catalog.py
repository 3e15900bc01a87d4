"""The catalog and the queries of this folder, as the service has them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from bench.search.distractors import distractors
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import ToolManifest

_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Query:
    """What somebody asks, and the ids of which one has to be found."""

    need: str
    tools: frozenset[str]
    language: str


def tools_asked_for() -> list[ToolManifest]:
    """Those that queries name, and the others of their kind."""
    return [_tool(line) for line in yaml.safe_load((_HERE / "tools.yaml").read_text("utf-8"))]


def entries(size: int) -> list[ToolEntry]:
    """So many: the tools of `tools.yaml`, and distractors."""
    known = tools_asked_for()
    return [ToolEntry(manifest=manifest) for manifest in (*known, *distractors(size - len(known)))]


def labelled() -> list[Query]:
    lines: Mapping[str, list[Mapping[str, object]]] = yaml.safe_load((_HERE / "queries.yaml").read_text("utf-8"))
    return [_query(line, language) for language, of_language in lines.items() for line in of_language]


def _query(line: Mapping[str, object], language: str) -> Query:
    tools = line["tools"]
    if line.keys() != {"need", "tools"}:
        raise ValueError(f"A line that is cut in the wrong place: {line}")
    return Query(str(line["need"]), frozenset(map(str, tools)) if isinstance(tools, list) else frozenset(), language)


def _tool(line: Mapping[str, object]) -> ToolManifest:
    params = line["params"]
    if line.keys() != {"id", "name", "category", "tags", "params", "description"}:
        raise ValueError(f"A line that is cut in the wrong place: {line}")
    known = params.items() if isinstance(params, Mapping) else ()
    properties = {str(name): {"type": "string", "description": str(says)} for name, says in known}
    told = {name: line[name] for name in ("name", "description", "category", "tags")}
    return ToolManifest.model_validate({"tool_id": line["id"], **told, "input_schema": {"type": "object", "properties": properties}})
