"""Where the tools of an OpenAPI document run: at the server that it names, or in a process that we start."""

import re
from typing import TypedDict
from urllib.parse import quote, urlsplit

from engine.making.openapi.document import DocumentRefused, OpenApiDocument
from engine.making.openapi.operations import Operation
from engine.making.openapi.requests import RequestShape
from engine.making.openapi.tools import SourceOf
from toolagent.contracts.sources import DockerSource, HttpMethod, LocalSource, RemoteSource

__all__ = ["docker_sources", "local_sources", "remote_sources"]

_HERE = ("localhost", "127.0.0.1", "::1")
_NOT_IN_A_SECRET = re.compile(r"[^A-Z0-9]+")


class _Called(TypedDict):
    endpoint_path: str
    http_method: HttpMethod
    query_parameters: tuple[str, ...]
    header_parameters: dict[str, str]
    body_parameter: str | None


def remote_sources(document: OpenApiDocument, tool_name: str) -> SourceOf:
    """At the document's first server. A key that an operation wants is the secret `<TOOL_NAME>_API_KEY`. Raises DocumentRefused."""
    if not document.server_url:
        raise DocumentRefused("The document names no server by an absolute address (`servers: [{url: https://…}]`).")
    secret, is_private = _secret_of(tool_name), _is_private(document.server_url)

    def source(operation: Operation, shape: RequestShape, _health: str | None) -> RemoteSource:
        key = operation.credential
        called = _called(shape, operation, "")
        plain = RemoteSource(remote_url=document.server_url, only_public=True, **called)
        if key is None:
            return plain
        if not key.is_known:
            raise DocumentRefused("It wants to be shown something that is no single key.")
        if not is_private:
            raise DocumentRefused(
                "It wants to be shown a key, which everybody on the way to an http:// address could read. Name an https:// one."
            )
        if key.place == "query":
            asking = f"{called['endpoint_path']}?{quote(key.name)}=secret:{secret}"
            return plain.model_copy(update={"endpoint_path": asking})
        return plain.model_copy(update={"remote_api_key": f"secret:{secret}", "auth_header": key.name, "auth_scheme": key.word})

    return source


def local_sources(document: OpenApiDocument, host_dir: str, content: str | None = None) -> SourceOf:
    """In a process of ours, of the project in that folder of the data folder."""

    def source(operation: Operation, shape: RequestShape, health: str | None) -> LocalSource:
        _insist_on_no_key(operation)
        called = _called(shape, operation, document.base_path)
        made = LocalSource(host_dir=host_dir, content=content, **called)
        return made.model_copy(update={**_healthy(health, document.base_path)})

    return source


def docker_sources(document: OpenApiDocument, host_dir: str, dockerfile: str, port: int, content: str | None = None) -> SourceOf:
    """In a container of ours, whose image is built of that folder of the data folder."""

    def source(operation: Operation, shape: RequestShape, health: str | None) -> DockerSource:
        _insist_on_no_key(operation)
        called = _called(shape, operation, document.base_path)
        built = DockerSource(host_dir=host_dir, dockerfile=dockerfile, internal_port=port, content=content, **called)
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
    }


def _healthy(health: str | None, base: str) -> dict[str, str]:
    return {"health_path": f"{base}{health}"} if health else {}


def _insist_on_no_key(operation: Operation) -> None:
    """A tool that we run itself is shown no key."""
    if operation.credential is not None:
        raise DocumentRefused("It wants to be shown a key, which a tool that runs here has nobody to give.")


def _is_private(url: str) -> bool:
    """Whether nobody on the way can read what is sent there."""
    parts = urlsplit(url)
    return parts.scheme == "https" or parts.hostname in _HERE


def _secret_of(tool_name: str) -> str:
    return _NOT_IN_A_SECRET.sub("_", tool_name.upper()).strip("_") + "_API_KEY"
