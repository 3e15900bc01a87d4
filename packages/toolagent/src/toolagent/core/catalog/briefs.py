"""A tool in brief: its parameters and what distinguishes it from others."""

from collections.abc import Iterator

from pydantic import JsonValue

from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.http import BriefTool, Parameter
from toolagent.contracts.manifest import ToolManifest
from toolagent.core.parameter_schemas import properties_of, required_names

__all__ = ["in_brief", "parameters_of"]

_BRIEF = 200


def in_brief(manifest: ToolManifest) -> BriefTool:
    """The tool as one line in the context of a model."""
    params = sorted(parameters_of(manifest.input_schema), key=lambda param: not param.required)
    return BriefTool(
        tool_id=manifest.tool_id,
        name=manifest.name,
        description=manifest.description[:_BRIEF],
        category=manifest.category,
        params=tuple(param.name if param.required else f"{param.name}?" for param in params),
        external_source=manifest.external_source,
    )


def parameters_of(schema: JsonSchema) -> Iterator[Parameter]:
    """In the order of the schema."""
    required = required_names(schema)
    for name, described in properties_of(schema).items():
        known = described if isinstance(described, dict) else {}
        description = known.get("description")
        yield Parameter(
            name=name,
            type=_type_of(known.get("type")),
            description=description if isinstance(description, str) else "",
            required=name in required,
        )


def _type_of(said: JsonValue) -> str:
    match said:
        case str():
            return said
        case list():
            return " | ".join(map(str, said))
        case _:
            return "any"
