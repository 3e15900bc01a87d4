"""A part of the settings, and the types of values."""

from typing import Annotated, TypeAlias, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

T = TypeVar("T")

PREFIX = "TOOL_AGENT_"


class Part(BaseSettings):
    """Each field is the environment variable of its name in capitals, after the prefix. The text below it is its description in the docs.

    Only the docs read these texts: letting pydantic read the sources would take tenths of a second at each start.
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="forbid")


def _split(value: object) -> object:
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def _http(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("it begins with http:// or https://, names a host, and has neither ? nor #")
    return value


Port: TypeAlias = Annotated[int, Field(ge=0, le=65535)]
"""0 takes a free port."""

Number: TypeAlias = Annotated[int, Field(ge=1)]
"""At least one."""

Seconds: TypeAlias = Annotated[float, Field(gt=0, le=1e9)]
Dollars: TypeAlias = Annotated[float, Field(ge=0)]
HttpAddress: TypeAlias = Annotated[str, AfterValidator(_http)]
CommaSeparated: TypeAlias = Annotated[T, NoDecode, BeforeValidator(_split)]
Names: TypeAlias = CommaSeparated[tuple[str, ...]]
