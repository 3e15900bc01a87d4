"""Sources that are reached over HTTP."""

from typing import Annotated, Literal

from pydantic import Field

from toolagent.contracts.identifiers import HeaderName
from toolagent.contracts.sources.source import Source

__all__ = ["BodyEncoding", "HttpMethod", "HttpSource", "ParameterStyle"]

HttpMethod = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

BodyEncoding = Literal["json", "form", "multipart", "octets", "none"]

ParameterStyle = Literal["comma", "space", "pipe", "deep", "fields", "json"]
"""`a,b`, `a b`, `a|b`, `name[key]=value`, `key=value` for each field of the object, or the JSON text of the value."""


class HttpSource(Source):
    """What all sources that are reached over HTTP say of it."""

    endpoint_path: Annotated[str, Field(pattern=r"^/", description="Path of the call; `{name}` is filled from the parameters.")] = "/"
    http_method: HttpMethod = "POST"
    health_path: Annotated[
        str,
        Field(
            pattern=r"^/",
            description="Asked until it answers 200; of the default one, and where a path is not there, any answer below 500 will do.",
        ),
    ] = "/health"
    query_parameters: Annotated[
        tuple[str, ...], Field(description="Parameters that go into the query although the method has a body; GET and DELETE need none.")
    ] = ()
    header_parameters: Annotated[dict[str, HeaderName], Field(description="Parameters that go into a header, with its name.")] = {}
    body_parameter: Annotated[
        str | None, Field(description="The parameter that is the whole body; unset: an object of all that go nowhere else.")
    ] = None
    parameter_styles: Annotated[
        dict[str, ParameterStyle], Field(description="Lists and objects in path, query or header that are not written as usual.")
    ] = {}
    body_encoding: Annotated[
        BodyEncoding, Field(description="How the body is written; `octets`: `body_parameter` names a file, sent as it is.")
    ] = "json"
    body_media_type: Annotated[
        str, Field(pattern=r"^([\w.+*-]+/[\w.+*-]+)?$", description="The media type of octets; empty: `application/octet-stream`.")
    ] = ""
    file_parameters: Annotated[
        tuple[str, ...], Field(description="Parameters of the format `file-path` whose files are sent, in a body that is not JSON.")
    ] = ()
