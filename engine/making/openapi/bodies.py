"""How an operation of an OpenAPI document takes its body: as JSON, a form, in parts, or as a file."""

from dataclasses import dataclass, field, replace

from pydantic import JsonValue

from engine.making.openapi.documents.document import OpenApiDocument, Part, part
from toolagent.contracts.sources import BodyEncoding, HttpMethod

_FORM, _MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
_NAMED = 5


@dataclass(frozen=True, slots=True)
class OperationBody:
    """`schema` is as the document has it; None: there is none, or nothing is said of it. `media_type` is that of octets.

    `encodings` are what a form says of its fields.
    """

    schema: JsonValue = None
    required: bool = False
    encoding: BodyEncoding = "json"
    media_type: str = ""
    encodings: Part = field(default_factory=dict[str, JsonValue])


NO_BODY = OperationBody(encoding="none")


def body_of(document: OpenApiDocument, method: HttpMethod, described: Part) -> OperationBody | str:
    """JSON before forms, forms before files. Of a body that is needed and not sent: why."""
    if "requestBody" not in described:
        return NO_BODY
    found = document.resolved(described["requestBody"])
    content, required = part(found.get("content")), found.get("required") is True
    if method == "GET":
        return f"A {method} request with a body is not sent." if required and content else NO_BODY
    schema = json_schema(content)
    if schema is not None:
        return OperationBody(schema, required or _needs_fields(document, found, schema))
    form = _form(document, content, required)
    if form is not None:
        return replace(form, required=required or _needs_fields(document, found, form.schema))
    kind = next((kind for kind in content if _is_type(kind)), None)
    if kind is not None:
        return OperationBody({"type": "string", "format": "binary"}, required, "octets", kind.partition(";")[0].strip().lower())
    return f"It takes a body of {_kinds(content)} only, which is not sent." if required and content else NO_BODY


def _needs_fields(document: OpenApiDocument, body: Part, schema: JsonValue) -> bool:
    """Documents that do not say whether a body is needed mean that it is, where one without these fields would be refused."""
    return "required" not in body and bool(document.resolved(schema).get("required"))


def no_body_in(document: OpenApiDocument, described: Part, body: OperationBody) -> str:
    """What of an optional body is not sent; empty where all of it is."""
    if body is not NO_BODY or "requestBody" not in described:
        return ""
    content = part(document.resolved(described["requestBody"]).get("content"))
    return f"It may have a body of {_kinds(content)}, which is not sent." if content else ""


def json_schema(content: Part) -> JsonValue:
    """The schema of the JSON among the media types; None where there is no JSON."""
    for kind, media in content.items():
        name = kind.partition(";")[0].strip().lower()
        if name in ("application/json", "*/*", "application/*") or name.endswith("+json"):
            schema = part(media).get("schema")
            return {} if schema is None else schema
    return None


def _form(document: OpenApiDocument, content: Part, required: bool) -> OperationBody | None:
    """Parts only where a field is a file, or there is no other form."""
    there = {kind.partition(";")[0].strip().lower(): part(media) for kind, media in content.items()}
    forms = [there[kind] for kind in (_FORM, _MULTIPART) if kind in there]
    if not forms:
        return None
    has_file = _MULTIPART in there and _has_file(document, there[_MULTIPART].get("schema"))
    encoding: BodyEncoding = "multipart" if _FORM not in there or has_file else "form"
    media = there[_MULTIPART if encoding == "multipart" else _FORM]
    schema = media.get("schema")
    return OperationBody({"type": "object"} if schema is None else schema, required, encoding, encodings=part(media.get("encoding")))


def _has_file(document: OpenApiDocument, schema: JsonValue) -> bool:
    properties = part(document.resolved(schema).get("properties"))
    return any(is_file(document, one) for one in properties.values())


def is_file(document: OpenApiDocument, schema: JsonValue) -> bool:
    """Whether it says that a value is the content of a file, or a list of those."""
    whole = document.resolved(schema)
    if whole.get("type") == "array":
        whole = document.resolved(whole.get("items"))
    is_raw = isinstance(whole.get("contentMediaType"), str) and "contentEncoding" not in whole
    return whole.get("type") in ("string", None) and (whole.get("format") == "binary" or is_raw)


def _is_type(kind: str) -> bool:
    """A whole media type, which can be sent as the type of a file."""
    name = kind.partition(";")[0].strip()
    place, slash, rest = name.partition("/")
    return bool(slash and place and rest) and "*" not in name and all(one.isalnum() or one in "./+-_" for one in name)


def _kinds(content: Part) -> str:
    return ", ".join(sorted(content)[:_NAMED])
