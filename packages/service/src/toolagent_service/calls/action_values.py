"""Reads the texts of an `<ACTION>` as values of the types in the tool's schema."""

import json
import math
import re
from typing import cast

from pydantic import JsonValue
from pydantic_core import from_json

from toolagent.contracts.calls import ValidationIssue
from toolagent.contracts.contract import JsonSchema
from toolagent.core.calls.action import Element
from toolagent.core.calls.json_size import MAX_STARTED_VALUES, excess_of, values_in
from toolagent.core.parameter_schemas import branches_of, properties_of, subschema, types_of

_NUMBER = re.compile(r"[+-]?(\d{1,400})(\.\d{1,400})?([eE][+-]?\d{1,4})?")
_TRUTH = {"true": True, "false": False}
_A = {
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
    "object": "a JSON object, best in <![CDATA[…]]>",
    "array": "a list: <item>…</item>, or a JSON array",
}


class _Unfit(ValueError):
    """The text has none of the types that it may have."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path


def typed_inputs(
    schema: JsonSchema, inputs: dict[str, Element], max_values: int = MAX_STARTED_VALUES
) -> tuple[dict[str, JsonValue], tuple[ValidationIssue, ...]]:
    """The parameters, and the texts that do not fit their types. A value of the right type may still violate the schema.

    A string stays as written. A value without a type in the schema is read as JSON if it is JSON, else as text.
    """
    params: dict[str, JsonValue] = {}
    issues: list[ValidationIssue] = []
    reader = _Reader(max_values)
    for name, element in inputs.items():
        try:
            params[name] = reader.value(element, _property(schema, name), f"$.{name}")
        except _Unfit as unfit:
            issues.append(ValidationIssue(path=unfit.path, message=str(unfit), keyword="type"))
    return params, tuple(issues)


class _Reader:
    """Reads one block. All JSON texts in it together may hold `max_values` values."""

    def __init__(self, max_values: int) -> None:
        self._left = self._most = max_values

    def value(self, element: Element, schema: JsonSchema, path: str) -> JsonValue:
        if not element.children:
            return self._leaf(element.text, types_of(schema), path)
        if element.text.strip():
            raise _Unfit(path, "holds text and elements at once; write the text in <![CDATA[…]]>")
        tags = [child.tag for child in element.children]
        types = types_of(schema)
        if set(tags) == {"item"} and (not types or "array" in types):
            items = subschema(schema, "items")
            return [self.value(child, items, f"{path}[{place}]") for place, child in enumerate(element.children)]
        if len(set(tags)) != len(tags):
            raise _Unfit(path, "holds an element more than once; the entries of a list are each an <item>")
        if types and "object" not in types:
            raise _Unfit(path, f"must be {_listed(types)}; there are elements in it")
        return {child.tag: self.value(child, _property(schema, child.tag), f"{path}.{child.tag}") for child in element.children}

    def _leaf(self, text: str, types: frozenset[str], path: str) -> JsonValue:
        stripped = text.strip()
        if "string" in types:
            return text
        if not types:
            return self._json(stripped, text, path)
        if "null" in types and stripped in {"", "null"}:
            return None
        if "boolean" in types and stripped.lower() in _TRUTH:
            return _TRUTH[stripped.lower()]
        if types & {"integer", "number"} and (number := _number(stripped, types)) is not None:
            return number
        if types & {"object", "array"}:
            return self._structure(stripped, types, path)
        raise _Unfit(path, f"must be {_listed(types)}")

    def _structure(self, text: str, types: frozenset[str], path: str) -> JsonValue:
        if "array" in types and "object" not in types and not text:
            return []
        value = self._json(text, None, path)
        kind = "object" if isinstance(value, dict) else "array" if isinstance(value, list) else ""
        if kind not in types:
            raise _Unfit(path, f"must be {_listed(types)}")
        return value

    def _json(self, text: str, otherwise: JsonValue, path: str) -> JsonValue:
        """The text as strict JSON; `otherwise` if it is none."""
        if text.startswith(("[", "{")):
            encoded = text.encode("utf-8", "surrogatepass")
            if excess := excess_of(encoded, self._left):
                if excess.of == "levels":
                    return otherwise
                raise _Unfit(path, f"{excess} (TOOL_AGENT_MAX_VALUES: {self._most} for all the JSON of a block)")
            self._left -= values_in(encoded)
        try:
            from_json(text, allow_inf_nan=False)
            return cast("JsonValue", json.loads(text, parse_float=_finite))
        except ValueError:
            return otherwise


def _number(text: str, types: frozenset[str]) -> int | float | None:
    if not (form := _NUMBER.fullmatch(text)):
        return None
    if form[2] is None and form[3] is None:
        return int(text)
    value = float(text)
    if not math.isfinite(value) or ("number" not in types and not value.is_integer()):
        return None
    return value if "number" in types else int(value)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number beyond a double's range")
    return value


def _property(schema: JsonSchema, name: str) -> JsonSchema:
    found = (properties_of(branch).get(name) for branch in branches_of(schema))
    return next((one for one in found if isinstance(one, dict)), subschema(schema, "additionalProperties"))


def _listed(types: frozenset[str]) -> str:
    return " or ".join(_A.get(kind, kind) for kind in sorted(types))
