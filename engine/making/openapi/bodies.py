"""How an operation of an OpenAPI document takes its body: as JSON, a form, in parts, or as a file."""

from dataclasses import dataclass, field, replace

from pydantic import JsonValue

from engine.making.json_values import Part, items, part
from engine.making.openapi.documents.document import OpenApiDocument
from toolagent.contracts.sources import BodyEncoding, HttpMethod

_FORM, _MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
_NAMED = 5
_MOST_BRANCHES = 10


@dataclass(frozen=True, slots=True)
class OperationBody:
    """`schema` is the document's; None if there is none. `media_type` is that of octets, and of JSON if it is not `application/json`.

    `encodings` describe fields of a form.
    """

    schema: JsonValue = None
    required: bool = False
    encoding: BodyEncoding = "json"
    media_type: str = ""
    encodings: Part = field(default_factory=dict[str, JsonValue])


NO_BODY = OperationBody(encoding="none")


def body_of(document: OpenApiDocument, method: HttpMethod, described: Part) -> OperationBody | str:
    """Prefers JSON to forms, and forms to files. If a required body cannot be sent, the reason."""
    if "requestBody" not in described:
        return NO_BODY
    found = document.resolved(described["requestBody"])
    content, required = part(found.get("content")), found.get("required") is True
    if method == "GET":
        return f"A {method} request with a body is not sent." if required and content else NO_BODY
    schema, form = json_schema(content), _form(document, content, required)
    has_parts = form is not None and form.encoding == "multipart" and _has_file(document, schema)
    if schema is not None and not has_parts:
        return OperationBody(schema, required or _needs_fields(document, found, schema), media_type=_own_json_type(content))
    if form is not None:
        return replace(form, required=required or _needs_fields(document, found, form.schema))
    if kind := next(filter(_is_type, content), None):
        return OperationBody({"type": "string", "format": "binary"}, required, "octets", plain_type(kind))
    return f"It takes a body of {_kinds(content)} only, which is not sent." if required and content else NO_BODY


def _needs_fields(document: OpenApiDocument, body: Part, schema: JsonValue) -> bool:
    """Whether a body with required fields counts as required because the document does not say it."""
    return "required" not in body and bool(document.resolved(schema).get("required"))


def no_body_in(document: OpenApiDocument, described: Part, body: OperationBody) -> str:
    """Tells that an optional body is not sent; empty if it is."""
    if body is not NO_BODY or "requestBody" not in described:
        return ""
    content = part(document.resolved(described["requestBody"]).get("content"))
    return f"It may have a body of {_kinds(content)}, which is not sent." if content else ""


def json_schema(content: Part) -> JsonValue:
    """The schema of the JSON among the media types; None if there is no JSON."""
    kind = _json_kind(content)
    schema = part(content.get(kind)).get("schema")
    return {} if schema is None and kind in content else schema


def _json_kind(content: Part) -> str:
    """`application/json` before other JSON; empty if there is none."""
    kinds = [kind for kind, media in content.items() if _is_json(kind, media)]
    return min(kinds, key=lambda kind: plain_type(kind) != "application/json", default="")


def _is_json(kind: str, media: JsonValue) -> bool:
    """A wildcard may be JSON unless it describes the content of a file."""
    name = plain_type(kind)
    may_be = name in ("*/*", "application/*") and part(part(media).get("schema")).get("format") != "binary"
    return name == "application/json" or may_be or name.endswith("+json")


def _own_json_type(content: Part) -> str:
    """The type of the JSON, such as `application/json-patch+json`; empty if it is the usual one, or none that a source can name."""
    name = plain_type(_json_kind(content))
    return name if name.endswith("+json") and _is_type(name) else ""


def _form(document: OpenApiDocument, content: Part, required: bool) -> OperationBody | None:
    """Multipart only if a field is a file, or there is no other form."""
    there = {plain_type(kind): part(media) for kind, media in content.items()}
    form, parts = there.get(_FORM), there.get(_MULTIPART)
    if parts is not None and (form is None or _has_file(document, parts.get("schema"))):
        encoding: BodyEncoding = "multipart"
        media = parts
    elif form is not None:
        encoding, media = "form", form
    else:
        return None
    schema = media.get("schema")
    return OperationBody({"type": "object"} if schema is None else schema, required, encoding, encodings=part(media.get("encoding")))


def _has_file(document: OpenApiDocument, schema: JsonValue) -> bool:
    return any(is_file(document, one) for one in part(document.resolved(schema).get("properties")).values())


def branches_of(document: OpenApiDocument, schema: Part) -> list[Part]:
    """Empty also if there are too many for a file: every field that refers to them would repeat them all."""
    branches = items(schema.get("anyOf")) or items(schema.get("oneOf"))
    return [document.resolved(one) for one in branches] if len(branches) <= _MOST_BRANCHES else []


def is_file(document: OpenApiDocument, schema: JsonValue) -> bool:
    """Whether a value is the content of a file, or a list of such contents, or null in their place."""
    whole = document.resolved(schema)
    branches = [one for one in branches_of(document, whole) if one.get("type") != "null"]
    return all(_is_content(document, one) for one in branches or [whole])


def _is_content(document: OpenApiDocument, schema: Part) -> bool:
    whole = document.resolved(schema.get("items")) if schema.get("type") == "array" else schema
    is_raw = isinstance(whole.get("contentMediaType"), str) and "contentEncoding" not in whole
    return whole.get("type") in ("string", None) and (whole.get("format") == "binary" or is_raw)


def _is_type(kind: str) -> bool:
    """Whether this is a complete media type, which a file can be sent as."""
    name = plain_type(kind)
    place, slash, rest = name.partition("/")
    return bool(slash and place and rest) and name.isascii() and "*" not in name and all(one.isalnum() or one in "./+-_" for one in name)


def plain_type(kind: str) -> str:
    """The media type in lower case, without parameters."""
    return kind.partition(";")[0].strip().lower()


def _kinds(content: Part) -> str:
    return ", ".join(sorted(content)[:_NAMED])
