"""Whether a result holds what must not be told: by its schema, by the names in it, or by its form."""

from pydantic import JsonValue

from toolagent.contracts.contract import JsonSchema
from toolagent.core.calls.masking import masked_params, masked_text
from toolagent.core.schemas import MASK, mask_secrets

_NAME = "result"


def holds_secret(schema: JsonSchema, result: JsonValue) -> bool:
    whole: dict[str, JsonValue] = {_NAME: result}
    return mask_secrets({"properties": {_NAME: schema}}, whole) != whole or _tells(result)


def _tells(value: JsonValue) -> bool:
    match value:
        case str():
            return masked_text(value) != value
        case list():
            return any(map(_tells, value))
        case dict():
            return any(_is_named(name, inner) or _tells(inner) for name, inner in value.items())
        case _:
            return False


def _is_named(name: str, inner: JsonValue) -> bool:
    """A number or a truth value under such a name is none."""
    return isinstance(inner, str | list | dict) and MASK in masked_params({}, {name: ""}).values()
