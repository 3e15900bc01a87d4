"""Schemas of parameters in the form of vendors: an object at the top, without a choice between schemas there."""

import json
from collections.abc import Iterator

from pydantic import JsonValue

from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.manifest import ToolManifest
from toolagent.core.json_paths import referenced
from toolagent.core.parameter_schemas import properties_of
from toolagent.core.schemas import FOLLOWED

__all__ = ["UnsuitableTool", "described", "is_object_schema", "object_schema", "plain_object_schema", "without_formats"]

_CHOICES = ("anyOf", "oneOf", "allOf", "not", "enum", "if", "then", "else")
"""Keywords that OpenAI or Anthropic refuse at the top of a schema of parameters, or that depend on these."""

_DEFINITIONS = ("$defs", "definitions")
_MORE = ("not", "contains", "propertyNames", "unevaluatedProperties", "unevaluatedItems", "additionalItems")
"""Keywords with one schema that are not in `FOLLOWED`."""
_TURNED = ("not", "if")
"""Left out if they contain a `format`: without it they would be stricter."""
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_STEPS = 16


class UnsuitableTool(ValueError):
    """A vendor does not accept this tool; the message says why."""


def is_object_schema(schema: JsonSchema) -> bool:
    """Whether all valid values are objects."""
    return schema.get("type") == "object"


def without_formats(schema: JsonSchema) -> JsonSchema:
    """The schema without `format`, at least as permissive. Clients treat formats strictly, or complain about unknown ones."""
    plain, is_looser = _loosened(schema, counts_references=False)
    # If there is a format anywhere, the target of a reference may become more permissive.
    return _loosened(schema, counts_references=True)[0] if is_looser else plain


def _loosened(schema: JsonSchema, *, counts_references: bool) -> tuple[JsonSchema, bool]:
    """The schema without formats, and whether it became more permissive."""
    plain: JsonSchema = {}
    looser: set[str] = set()
    for key, value in schema.items():
        if key != "format":
            plain[key], is_looser = _inside(key, value, counts_references=counts_references)
            looser |= {key} if is_looser else set()
    if "oneOf" in looser:
        # More than one of them may match now.
        also = plain.get("allOf", [])
        plain["allOf"] = [*(also if isinstance(also, list) else []), {"anyOf": plain.pop("oneOf")}]
    if "contains" in looser:
        plain.pop("maxContains", None)
    refers = counts_references and any(key in schema for key in _REFERENCES)
    kept = {key: value for key, value in plain.items() if key not in _TURNED or key not in looser}
    return kept, bool(looser) or refers or "format" in schema


def _inside(key: str, value: JsonValue, *, counts_references: bool) -> tuple[JsonValue, bool]:
    def of(one: JsonValue) -> tuple[JsonValue, bool]:
        return _loosened(one, counts_references=counts_references) if isinstance(one, dict) else (one, False)

    if isinstance(value, list) and key in FOLLOWED:
        listed = [of(one) for one in value]
        return [one for one, _ in listed], any(is_looser for _, is_looser in listed)
    if isinstance(value, dict) and (key in _DEFINITIONS or FOLLOWED.get(key) == "named"):
        named = {name: of(one) for name, one in value.items()}
        return {name: one for name, (one, _) in named.items()}, any(is_looser for _, is_looser in named.values())
    return of(value) if key in FOLLOWED or key in _MORE else (value, False)


def object_schema(schema: JsonSchema) -> JsonSchema:
    """The schema with `type: object` at its top. Raises UnsuitableTool if no object is valid."""
    kind = schema.get("type", "object")
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        raise UnsuitableTool(f"its parameters are no object: `type` of its input_schema is {json.dumps(kind)}")
    return {**schema, "type": "object"}


def plain_object_schema(schema: JsonSchema) -> tuple[JsonSchema, str]:
    """A schema that OpenAI and Anthropic accept, at least as permissive, and the left-out rules in words.

    References at the top are followed, and choices there are replaced by the properties of all of them. The service validates calls against
    the real schema, so a left-out rule costs the model a second try, not a wrong call. Raises UnsuitableTool.
    """
    top = object_schema(_followed(schema))
    left_out: JsonSchema = {key: top[key] for key in _CHOICES if key in top}
    properties = dict(properties_of(top))
    for branch in _branches(schema, left_out):
        properties = {**properties_of(branch), **properties}
    plain: JsonSchema = {**{key: value for key, value in top.items() if key not in _CHOICES}, "properties": properties}
    words = f"The arguments must also fit: {json.dumps(left_out, ensure_ascii=False)}" if left_out else ""
    return plain, words


def described(manifest: ToolManifest) -> tuple[JsonSchema, str]:
    """The plain schema of the parameters of a tool, and its description, which says in words what the schema leaves out."""
    schema, words = plain_object_schema(manifest.input_schema)
    return schema, "\n\n".join(part for part in (manifest.description or manifest.name, words) if part)


def _followed(schema: JsonSchema) -> JsonSchema:
    """The schema with the reference at its top replaced by what it names; definitions stay."""
    for _ in range(_STEPS):
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return schema
        found = referenced(schema, reference)
        if not isinstance(found, dict):
            raise UnsuitableTool(f"the reference {reference} at the top of its input_schema leads nowhere")
        schema = {**found, **{key: value for key, value in schema.items() if key != "$ref"}}
    raise UnsuitableTool("the references at the top of its input_schema lead in a circle")


def _branches(root: JsonSchema, choices: JsonSchema, depth: int = _STEPS) -> Iterator[JsonSchema]:
    """All schemas in the choices, at any depth."""
    if not depth:
        raise UnsuitableTool("the choices at the top of its input_schema are nested too deep")
    for key in ("allOf", "anyOf", "oneOf", "then", "else"):
        value = choices.get(key)
        for branch in value if isinstance(value, list) else (value,):
            if isinstance(branch, dict):
                whole = _followed({**{name: root[name] for name in ("$defs", "definitions") if name in root}, **branch})
                yield whole
                yield from _branches(root, whole, depth - 1)
