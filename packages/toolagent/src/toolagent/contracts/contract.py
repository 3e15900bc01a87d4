"""The base class of all values on the wire."""

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, JsonValue
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

__all__ = ["CAMEL_CASE", "Contract", "JsonSchema", "said_below"]

JsonSchema = dict[str, JsonValue]

CAMEL_CASE = ConfigDict(alias_generator=to_camel)
"""For contracts that people write: `allowRead`."""


class Contract(BaseModel):
    """A frozen model. It ignores unknown fields, so that an old worker can read a new payload.

    The docstring below a field is its description in schemas.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
    )

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core_schema)
        _describe_fields(cls, handler.resolve_ref_schema(schema))
        return schema


def _describe_fields(model: type[BaseModel], schema: JsonSchemaValue) -> None:
    """Adds docstrings of fields. Reads the source only when a schema is made, which is rare."""
    properties = schema.get("properties", {})
    for name, field in model.model_fields.items():
        said = None if field.description else said_below(model, name)
        for key in (name, field.alias, field.validation_alias, field.serialization_alias) if said else ():
            if isinstance(key, str) and key in properties:
                properties[key]["description"] = said


def said_below(model: type[BaseModel], field: str) -> str | None:
    """The docstring below a field, in the class that declares it last. None if there is none, or no source."""
    declares = next((one for one in model.__mro__ if field in inspect.get_annotations(one)), model)
    return _texts(declares.__module__).get(declares.__qualname__, {}).get(field)


@cache
def _texts(module: str) -> Mapping[str, Mapping[str, str]]:
    """The docstrings of fields, by the qualified name of the class. Empty without a source."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (KeyError, OSError, TypeError):
        return {}
    return dict(_classes(tree.body, ""))


def _classes(body: Sequence[ast.stmt], inside: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    for statement in body:
        match statement:
            case ast.ClassDef(name=name, body=inner):
                yield inside + name, dict(_below(inner))
                yield from _classes(inner, f"{inside}{name}.")
            case ast.FunctionDef(name=name, body=inner) | ast.AsyncFunctionDef(name=name, body=inner):
                yield from _classes(inner, f"{inside}{name}.<locals>.")
            case _:
                pass


def _below(body: Sequence[ast.stmt]) -> Iterator[tuple[str, str]]:
    for declared, said in pairwise(body):
        match declared, said:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str() as text)):
                yield name, inspect.cleandoc(text)
            case _:
                pass
