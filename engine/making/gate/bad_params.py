"""Input that a tool's own schema does not allow."""

from collections.abc import Collection, Iterator
from functools import partial
from itertools import islice

from pydantic import JsonValue

from engine.making.gate.subject import Params
from engine.making.json_values import items, part, texts
from toolagent.contracts.contract import JsonSchema
from toolagent.validation.schemas import issues_of

_OTHER: tuple[JsonValue, ...] = ("text that was not asked for", {"not": "asked for"}, [[]])
_NOT_ANY_TEXT = frozenset({"integer", "number", "boolean"})
_UNKNOWN = "zz_not_asked_for"


def bad_params(schema: JsonSchema, base: Params, *, as_text: Collection[str], takes_more: bool, most: int) -> Iterator[tuple[str, Params]]:
    """Yields at most `most` descriptions with parameters that break the schema; `base` are valid parameters.

    Parameters in `as_text` arrive as text. `takes_more`: an unknown parameter would arrive.
    """
    bad = (one for one in _changed(schema, base, as_text, takes_more=takes_more) if issues_of(schema, one[1]))
    return islice(bad, most)


def _changed(schema: JsonSchema, base: Params, as_text: Collection[str], *, takes_more: bool) -> Iterator[tuple[str, Params]]:
    for name in items(schema.get("required")):
        yield f"without {name!r}, which is required", {key: value for key, value in base.items() if key != name}
    for name, inner in part(schema.get("properties")).items():
        if isinstance(inner, dict):
            yield from _mistyped(schema, base, name, inner, as_text=name in as_text)
    if takes_more:
        yield "with a parameter that it does not have", {**base, _UNKNOWN: "x"}


def _mistyped(schema: JsonSchema, base: Params, name: str, inner: JsonSchema, *, as_text: bool) -> Iterator[tuple[str, Params]]:
    """Replaces one parameter by the first value of another type that breaks the schema."""
    types = frozenset(texts(inner.get("type")))
    if as_text and not (types & _NOT_ANY_TEXT and types <= _NOT_ANY_TEXT | {"null"}):
        return
    changed: Iterator[Params] = ({**base, name: other} for other in (_OTHER[:1] if as_text else _OTHER))
    yield from ((f"with {name!r} of a wrong type", params) for params in islice(filter(partial(issues_of, schema), changed), 1))
