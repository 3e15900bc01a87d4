"""The credential that an operation of an OpenAPI document requires."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import JsonValue

from engine.making.json_values import Part, items, part, texts
from engine.making.openapi.documents.document import OpenApiDocument
from engine.making.openapi.documents.servers import may_carry_key


@dataclass(frozen=True, slots=True)
class Credential:
    """A secret in the header, query or cookie `name`, after `word` (such as `Bearer`). `is_known`: the service can send it.

    `kind` is as in a RemoteSource; `token_url` and `scopes` belong to client credentials. `scheme` is the document's name for it.
    """

    place: Literal["header", "query", "cookie"] = "header"
    name: str = "Authorization"
    word: str = ""
    is_known: bool = True
    kind: Literal["key", "basic", "client_credentials"] = "key"
    token_url: str = ""
    scopes: tuple[str, ...] = ()
    scheme: str = ""


def credential_of(document: OpenApiDocument, operation: Part) -> Credential | None:
    """None if none is needed. Of several alternatives, the first that can be sent."""
    choices = [part(one) for one in items(operation["security"] if "security" in operation else document.root.get("security"))]
    if not choices or not all(choices):
        return None
    # A choice of several schemes needs more than one secret.
    single = [next(iter(choice.items())) for choice in choices if len(choice) == 1]
    known = [replace(found, scheme=named) for named, scopes in single for found in _sent(document, named, scopes)]
    return known[0] if known else Credential(is_known=False)


def _sent(document: OpenApiDocument, named: str, scopes: JsonValue) -> Iterator[Credential]:
    scheme = document.resolved(part(part(document.root.get("components")).get("securitySchemes")).get(named))
    name, kind = scheme.get("name"), str(scheme.get("type"))
    match kind, scheme.get("in"), str(scheme.get("scheme", "")).lower():
        case ("http", _, "bearer") | ("openIdConnect", _, _):
            yield Credential(word="Bearer")
        case "http", _, "basic":
            yield Credential(kind="basic")
        case "apiKey", "header" | "query" | "cookie" as place, _ if isinstance(name, str) and name:
            yield Credential(place, name)
        case "oauth2", _, _:
            yield _of_oauth(part(scheme.get("flows")), scopes)
        case _:
            return


def _of_oauth(flows: Part, scopes: JsonValue) -> Credential:
    """Client credentials, else a token that was obtained elsewhere."""
    url = part(flows.get("clientCredentials")).get("tokenUrl")
    if not isinstance(url, str) or not may_carry_key(url):
        return Credential(word="Bearer")
    return Credential(word="Bearer", kind="client_credentials", token_url=url, scopes=tuple(texts(items(scopes))))
