"""The front door: where it listens, how much it takes; and the log."""

from typing import Annotated, Literal

from pydantic import Field, SecretStr

from toolagent.core.calls.json_size import MAX_STARTED_VALUES
from workers.settings.part import CommaSeparated, Part, Port

__all__ = ["FrontSettings", "LimitSettings", "LogSettings"]


class FrontSettings(Part):
    """The front door."""

    fastapi_host: Annotated[str, Field(description="Address to listen on; any but a loopback one needs `api_key`.")] = "127.0.0.1"
    fastapi_port: Annotated[Port, Field(description="Port of the HTTP API.")] = 8001
    api_key: Annotated[
        Annotated[SecretStr, Field(min_length=1)] | None, Field(description="Bearer token that every request but `/health` must carry.")
    ] = None
    allowed_hosts: Annotated[
        CommaSeparated[tuple[str, ...]],
        Field(description="Host names a request may be addressed to when there is no key; comma-separated."),
    ] = ("127.0.0.1", "localhost", "[::1]")


class LimitSettings(Part):
    """Sizes."""

    max_params_bytes: Annotated[int, Field(ge=1024, le=1_310_720, description="Bytes of JSON the parameters of a call may have.")] = (
        1_048_576
    )
    max_values: Annotated[
        int,
        Field(
            ge=1024,
            le=MAX_STARTED_VALUES,
            description="Values (numbers, texts, lists, objects, names in objects …) a request body or the parameters may hold.",
        ),
    ] = 110_000
    max_file_bytes: Annotated[int, Field(ge=1, description="Bytes a file may have.")] = 64 * 1_048_576
    max_result_bytes: Annotated[int, Field(ge=1024, le=1_073_741_824, description="Bytes of JSON a tool's answer may have.")] = (
        64 * 1_048_576
    )
    max_result_values: Annotated[
        int,
        Field(ge=1024, le=16_777_216, description="Values (numbers, texts, lists, objects, names in objects …) a tool's answer may hold."),
    ] = 250_000
    inline_result_bytes: Annotated[
        int, Field(ge=1024, le=1_048_576, description="Bytes of JSON up to which an answer is in the result; larger ones become files.")
    ] = 256 * 1024


class LogSettings(Part):
    """The log."""

    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], Field(description="The least that is logged: `debug`, `info`, `warning` or `error`.")
    ] = "info"
    log_format: Annotated[
        Literal["console", "json"] | None,
        Field(description="`console` for people or `json` for machines, each line; unset: as for people at a terminal, else JSON events."),
    ] = None
