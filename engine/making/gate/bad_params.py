"""Input that a tool's own schema does not allow."""

from collections.abc import Collection, ItemsView, Iterator

from pydantic import JsonValue

from engine.making.gate.subject import Params
from toolagent.contracts.contract import JsonSchema
from toolagent.validation.schemas import issues_of

_OTHER: tuple[JsonValue, ...] = ("text that was not asked for", {"not": "asked for"}, [[]])
_NOT_ANY_TEXT = frozenset({"integer", "number", "boolean"})
_STRANGER = "zz_not_asked_for"


def bad_params(schema: JsonSchema, base: Params, *, as_text: Collection[str], takes_more: bool, most: int) -> Iterator[tuple[str, Params]]:
    """What is wrong, and the parameters; `base` are good ones. At most `most`; each is seen to break the schema.

    `as_text` are those that arrive as text, of which only what no text can be is bad. `takes_more`: a strange one would arrive.
    """
    count = 0
    for what, params in _changed(schema, base, as_text, takes_more=takes_more):
        if count < most and issues_of(schema, params):
            count += 1
            yield what, params


def _changed(schema: JsonSchema, base: Params, as_text: Collection[str], *, takes_more: bool) -> Iterator[tuple[str, Params]]:
    required = schema.get("required")
    for name in required if isinstance(required, list) else []:
        yield f"without {name!r}, which is required", {key: value for key, value in base.items() if key != name}
    for name, inner in _properties(schema):
        if isinstance(inner, dict):
            yield from _mistyped(schema, base, name, inner, as_text=name in as_text)
    if takes_more:
        yield "with a parameter that it does not have", {**base, _STRANGER: "x"}


def _properties(schema: JsonSchema) -> ItemsView[str, JsonValue]:
    properties = schema.get("properties")
    return properties.items() if isinstance(properties, dict) else JsonSchema().items()


def _is_no_text(said: JsonValue) -> bool:
    """Of a type, or a list of them."""
    types = frozenset(one for one in (said if isinstance(said, list) else [said]) if isinstance(one, str))
    return bool(types & _NOT_ANY_TEXT) and types <= _NOT_ANY_TEXT | {"null"}


def _mistyped(schema: JsonSchema, base: Params, name: str, inner: JsonSchema, *, as_text: bool) -> Iterator[tuple[str, Params]]:
    """The first value of another type that does not fit."""
    if as_text and not _is_no_text(inner.get("type")):
        return
    others: tuple[JsonValue, ...] = _OTHER[:1] if as_text else _OTHER
    for other in others:
        params: Params = {**base, name: other}
        if issues_of(schema, params):
            yield f"with {name!r} of a wrong type", params
            return
