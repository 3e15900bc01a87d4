"""What an operation of an OpenAPI document wants to be shown before it answers."""

from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from engine.making.openapi.document import OpenApiDocument, Part, part

__all__ = ["Credential", "credential_of"]

_BEARING = {"oauth2": "Bearer", "openIdConnect": "Bearer"}


@dataclass(frozen=True, slots=True)
class Credential:
    """A key: in the header or the query of this name, behind a word (`Bearer`) if there is one. `is_known`: it can be sent."""

    place: Literal["header", "query"] = "header"
    name: str = "Authorization"
    word: str = ""
    is_known: bool = True


def credential_of(document: OpenApiDocument, operation: Part) -> Credential | None:
    """None where none is needed. Of several that would do, the first that can be sent."""
    wanted = operation["security"] if "security" in operation else document.root.get("security")
    choices = [part(one) for one in wanted] if isinstance(wanted, list) else []
    if not choices or any(not choice for choice in choices):
        return None
    schemes = part(part(document.root.get("components")).get("securitySchemes"))
    # Several at once are more than one key.
    known = [found for choice in choices if len(choice) == 1 and (found := _sent(document, schemes.get(next(iter(choice))))) is not None]
    return known[0] if known else Credential(is_known=False)


def _sent(document: OpenApiDocument, value: JsonValue) -> Credential | None:
    scheme = document.resolved(value)
    name, kind = scheme.get("name"), str(scheme.get("type"))
    match kind, scheme.get("in"), str(scheme.get("scheme", "")).lower():
        case "http", _, "bearer":
            return Credential(word="Bearer")
        case "http", _, "basic":
            return Credential(word="Basic")
        case "apiKey", "header", _ if isinstance(name, str):
            return Credential("header", name)
        case "apiKey", "query", _ if isinstance(name, str):
            return Credential("query", name)
        case _:
            return Credential(word=_BEARING[kind]) if kind in _BEARING else None
