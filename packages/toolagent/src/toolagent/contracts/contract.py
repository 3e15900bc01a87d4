"""What every value on the wire has in common."""

from pydantic import BaseModel, ConfigDict, JsonValue
from pydantic.alias_generators import to_camel

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
        use_attribute_docstrings=True,
    )
