"""What every value on the wire has in common."""

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, JsonValue
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from toolagent.contracts.descriptions import describe_fields

__all__ = ["CAMEL_CASE", "Contract", "JsonSchema"]

JsonSchema = dict[str, JsonValue]

CAMEL_CASE = ConfigDict(alias_generator=to_camel)
"""Of contracts that are written by people: `allowRead`."""


class Contract(BaseModel):
    """Frozen; ignores fields it does not know, so that an old worker may read a new payload.

    What stands below a field is its description.
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
        describe_fields(cls, handler.resolve_ref_schema(schema))
        return schema
