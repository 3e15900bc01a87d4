"""Where the tools of an OpenAPI document run: at the server that it names, or in a process that we start."""

import re
from collections.abc import Collection
from typing import TypedDict
from urllib.parse import quote

from engine.making.openapi.credentials import Credential
from engine.making.openapi.documents.document import DocumentRefused, OpenApiDocument
from engine.making.openapi.documents.servers import is_private, server_fault
from engine.making.openapi.logins import login_of
from engine.making.openapi.operations import Operation
from engine.making.openapi.requests import RequestShape
from engine.making.openapi.tools import SourceOf
from toolagent.contracts.sources import BodyEncoding, DockerSource, HttpMethod, LocalSource, ParameterStyle, RemoteSource

_NOT_IN_A_SECRET = re.compile(r"[^A-Z0-9]+")
_SECRETS = {"key": "API_KEY", "basic": "LOGIN", "client_credentials": "CLIENT"}


class _Called(TypedDict):
    endpoint_path: str
    http_method: HttpMethod
    query_parameters: tuple[str, ...]
    header_parameters: dict[str, str]
    body_parameter: str | None
    parameter_styles: dict[str, ParameterStyle]
    body_encoding: BodyEncoding
    body_media_type: str
    file_parameters: tuple[str, ...]


def remote_sources(document: OpenApiDocument, tool_name: str) -> SourceOf:
    """At the document's server, or the operation's own. Raises DocumentRefused.

    What an operation wants to be shown is the secret `<TOOL_NAME>_API_KEY`, a login (`user:password`) `<TOOL_NAME>_LOGIN`, that of a
    client which gets tokens (`client_id:client_secret`) `<TOOL_NAME>_CLIENT`.
    """
    if not document.server_url:
        raise DocumentRefused(server_fault(document))

    def source(operation: Operation, shape: RequestShape, _health: str | None) -> RemoteSource:
        key, url = operation.credential, operation.server_url or document.server_url
        plain = RemoteSource(remote_url=url, only_public=True, **_called(shape, operation, ""))
        if key is None:
            return plain
        if not key.is_known:
            raise DocumentRefused("It wants to be shown something that is no single secret, or none that can be sent.")
        if not is_private(url):
            raise DocumentRefused(
                "It wants to be shown a key, which everybody on the way to an http:// address could read. Name an https:// one."
            )
        return _showing(plain, key, f"secret:{_secret_of(tool_name)}_{_SECRETS[key.kind]}")

    return source


def _showing(plain: RemoteSource, key: Credential, named: str) -> RemoteSource:
    match key:
        case Credential(kind="client_credentials"):
            shown = {"auth_kind": "client_credentials", "auth_scheme": "Bearer", "token_url": key.token_url, "token_scopes": key.scopes}
        case Credential(kind="basic"):
            shown = {"auth_kind": "basic", "auth_scheme": "Basic"}
        case Credential(place="query"):
            return plain.model_copy(update={"endpoint_path": f"{plain.endpoint_path}?{quote(key.name)}={named}"})
        case Credential(place="cookie"):
            shown = {"auth_kind": "cookie", "auth_cookie": key.name}
        case _:
            shown = {"auth_header": key.name, "auth_scheme": key.word}
    return RemoteSource.model_validate({**plain.model_dump(), **shown, "remote_api_key": named})


def local_sources(document: OpenApiDocument, host_dir: str, variables: Collection[str] = ()) -> SourceOf:
    """In a process of ours, of the project in that folder of the data folder, which runs with these variables."""

    def source(operation: Operation, shape: RequestShape, health: str | None) -> LocalSource:
        called = _called(shape, operation, document.base_path)
        made = LocalSource(host_dir=host_dir, login=login_of(operation.credential, variables), **called)
        return made.model_copy(update={**_healthy(health, document.base_path)})

    return source


def docker_sources(document: OpenApiDocument, host_dir: str, dockerfile: str, port: int, variables: Collection[str] = ()) -> SourceOf:
    """In a container of ours, whose image is built of that folder of the data folder, and which runs with these variables."""

    def source(operation: Operation, shape: RequestShape, health: str | None) -> DockerSource:
        login, called = login_of(operation.credential, variables), _called(shape, operation, document.base_path)
        built = DockerSource(host_dir=host_dir, dockerfile=dockerfile, internal_port=port, login=login, **called)
        return built.model_copy(update={**_healthy(health, document.base_path)})

    return source


def _called(shape: RequestShape, operation: Operation, base: str) -> _Called:
    # Of GET and DELETE all goes into the query anyhow.
    query = () if operation.method in ("GET", "DELETE") else tuple(shape.query)
    return {
        "endpoint_path": f"{base}{shape.path}",
        "http_method": operation.method,
        "query_parameters": query,
        "header_parameters": shape.headers,
        "body_parameter": shape.body,
        "parameter_styles": shape.styles,
        "body_encoding": shape.encoding,
        "body_media_type": shape.media_type,
        "file_parameters": shape.files,
    }


def _healthy(health: str | None, base: str) -> dict[str, str]:
    return {"health_path": f"{base}{health}"} if health else {}


def _secret_of(tool_name: str) -> str:
    return _NOT_IN_A_SECRET.sub("_", tool_name.upper()).strip("_")
