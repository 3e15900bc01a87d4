"""The sources of an OpenAPI document's tools: a remote server, or a process that we start."""

import re
from collections.abc import Collection
from urllib.parse import quote

from engine.making.openapi.credentials import Credential
from engine.making.openapi.documents.document import DocumentRefused, OpenApiDocument
from engine.making.openapi.documents.servers import may_carry_key, server_fault
from engine.making.openapi.logins import login_of
from engine.making.openapi.operations import Operation
from engine.making.openapi.requests import RequestShape
from engine.making.openapi.tools import SourceOf
from toolagent.contracts.sources import DockerSource, LocalSource, RemoteSource

_NOT_IN_A_SECRET = re.compile(r"[^A-Z0-9]+")
_SECRETS = {"key": "API_KEY", "basic": "LOGIN", "client_credentials": "CLIENT"}


def remote_sources(document: OpenApiDocument, tool_name: str) -> SourceOf:
    """Sources at the document's server, or the operation's own. Raises DocumentRefused.

    Secrets are `<TOOL_NAME>_API_KEY`, `<TOOL_NAME>_LOGIN` (`user:password`), and `<TOOL_NAME>_CLIENT` (`client_id:client_secret`).
    """
    if not document.server_url:
        raise DocumentRefused(server_fault(document))

    def source(operation: Operation, shape: RequestShape, _health: str | None) -> RemoteSource:
        key, url = operation.credential, operation.server_url or document.server_url
        plain = RemoteSource.model_validate({"remote_url": url, "only_public": True, **_called(shape, operation, "")})
        if key is None:
            return plain
        if not key.is_known:
            raise DocumentRefused("It wants to be shown something that is no single secret, or none that can be sent.")
        if not may_carry_key(url):
            raise DocumentRefused(
                "It wants to be shown a key, which everybody on the way to an http:// address could read. Name an https:// one."
            )
        return _showing(plain, key, f"secret:{_NOT_IN_A_SECRET.sub('_', tool_name.upper()).strip('_')}_{_SECRETS[key.kind]}")

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
    """Sources in a local process: the project in the folder `host_dir`, with these variables."""
    return _served(document, LocalSource(host_dir=host_dir), variables)


def docker_sources(document: OpenApiDocument, host_dir: str, dockerfile: str, port: int, variables: Collection[str] = ()) -> SourceOf:
    """Sources in a container whose image is built from the folder `host_dir`, with these variables."""
    return _served(document, DockerSource(host_dir=host_dir, dockerfile=dockerfile, internal_port=port), variables)


def _served(document: OpenApiDocument, plain: LocalSource | DockerSource, variables: Collection[str]) -> SourceOf:
    def source(operation: Operation, shape: RequestShape, health: str | None) -> LocalSource | DockerSource:
        called = _called(shape, operation, document.base_path)
        made = plain.model_validate({**plain.model_dump(exclude_unset=True), "login": login_of(operation.credential, variables), **called})
        return made.model_copy(update={"health_path": f"{document.base_path}{health}"}) if health else made

    return source


def _called(shape: RequestShape, operation: Operation, base: str) -> dict[str, object]:
    return {
        "endpoint_path": f"{base}{shape.path}",
        "http_method": operation.method,
        # GET and DELETE send all parameters in the query.
        "query_parameters": () if operation.method in ("GET", "DELETE") else tuple(shape.query),
        "header_parameters": shape.headers,
        "body_parameter": shape.body,
        "parameter_styles": shape.styles,
        "body_encoding": shape.encoding,
        "body_media_type": shape.media_type,
        "file_parameters": shape.files,
        "gives_text": operation.gives_text,
    }
