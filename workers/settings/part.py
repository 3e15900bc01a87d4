"""What one part of the service can be told by the environment, and the kinds of values there are."""

from typing import Annotated, TypeAlias, TypeVar

from pydantic import BeforeValidator, Field
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

T = TypeVar("T")

PREFIX = "TOOL_AGENT_"


class Part(BaseSettings):
    """Each field is the variable of its name in capitals, behind the prefix; what is said below it is its description in the docs.

    It is read for them alone: having pydantic read the sources takes tenths of a second of each start.
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="forbid")


def _split(value: object) -> object:
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


Port: TypeAlias = Annotated[int, Field(ge=0, le=65535)]
"""0 takes a free one."""

Seconds: TypeAlias = Annotated[float, Field(gt=0, le=1e9)]
CommaSeparated: TypeAlias = Annotated[T, NoDecode, BeforeValidator(_split)]
