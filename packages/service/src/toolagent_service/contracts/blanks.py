"""Optional texts that are empty on the wire, because older workers read them."""

from typing import Annotated

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

Blank = Annotated[
    str | None,
    BeforeValidator(lambda text: None if text == "" else text),
    PlainSerializer(lambda text: text or "", return_type=str),
    WithJsonSchema({"type": "string"}),
    Field(json_schema_extra={"default": ""}),
]
"""An empty text is read as None, and None is written as an empty text."""
