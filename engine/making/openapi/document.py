"""One OpenAPI document of version 3.0 or 3.1, and where its references lead."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import unquote, urlsplit

from pydantic import JsonValue

from engine.making.openapi.yaml_text import NotReadable, read_yaml
from toolagent.core.texts import well_formed_json

__all__ = ["DocumentRefused", "OpenApiDocument", "Part", "part"]

Part = Mapping[str, JsonValue]
"""An object of the document."""

_VERSION = re.compile(r"3\.[01](\.\d+)?([-.].*)?")
_VARIABLE = re.compile(r"\{([^{}]+)\}")
_MAX_CHAIN = 20
_LONGEST_TITLE = 200


class DocumentRefused(ValueError):
    """The message says why a document cannot be used, and what to do."""


def part(value: JsonValue) -> Part:
    """The value where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


@dataclass(frozen=True, slots=True)
class OpenApiDocument:
    """`server_url` is absolute, or empty; `base_path` is the path of the first server, without a slash at its end."""

    root: Part
    version: str
    title: str
    server_url: str
    base_path: str
    is_31: bool = field(default=True)

    @classmethod
    def read(cls, text: str, *, is_json: bool) -> Self:
        """Raises DocumentRefused. Blocks."""
        try:
            return cls.of(_read_json(text) if is_json else read_yaml(text))
        except NotReadable as error:
            raise DocumentRefused(str(error)) from error

    @classmethod
    def of(cls, value: JsonValue) -> Self:
        """Raises DocumentRefused."""
        root = part(value)
        if "swagger" in root:
            message = f"Swagger {root['swagger']!s:.10} is too old. Convert the document to OpenAPI 3.0 or 3.1 (swagger2openapi does it)."
            raise DocumentRefused(message)
        version = str(root.get("openapi", ""))[:20]
        if not _VERSION.fullmatch(version):
            raise DocumentRefused(f"This is no OpenAPI document of version 3.0 or 3.1: `openapi` is {version!r}.")
        if not isinstance(root.get("paths"), dict):
            raise DocumentRefused("The document has no `paths`: it describes nothing that could be called.")
        title = part(root.get("info")).get("title")
        server, base = _server(root.get("servers"))
        return cls(root, version, str(title)[:_LONGEST_TITLE] if title else "untitled", server, base, version.startswith("3.1"))

    def resolved(self, value: JsonValue) -> Part:
        """The object, or the one that its `$ref` leads to. Raises DocumentRefused for a reference that leads nowhere or elsewhere."""
        for _ in range(_MAX_CHAIN):
            found = part(value)
            reference = found.get("$ref")
            if not isinstance(reference, str):
                return found
            value = self.at(reference)
        raise DocumentRefused("A reference leads to a reference, and so on without end.")

    def at(self, reference: str) -> JsonValue:
        """What a reference leads to. Raises DocumentRefused."""
        if not reference.startswith("#/"):
            raise DocumentRefused(f"{reference[:200]!r} refers to another document. Put everything into one (redocly bundle does it).")
        found: JsonValue = dict(self.root)
        for step in unquote(reference[2:]).split("/"):
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict) and name in found:
                found = found[name]
            elif isinstance(found, list) and name.isdecimal() and int(name) < len(found):
                found = found[int(name)]
            else:
                raise DocumentRefused(f"{reference[:200]!r} refers to what is not in the document.")
        return found


def _read_json(text: str) -> JsonValue:
    try:
        read: JsonValue = json.loads(well_formed_json(text.encode()), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise DocumentRefused(f"It is no JSON: {str(error)[:200]}") from error
    return read


def _no_constant(name: str) -> JsonValue:
    raise ValueError(f"{name} is no JSON")


def _server(servers: JsonValue) -> tuple[str, str]:
    """The address of the first server, its variables filled with their defaults; and its path."""
    first: Part = part(servers[0]) if isinstance(servers, list) and servers else {}
    variables = part(first.get("variables"))
    url = _VARIABLE.sub(lambda found: str(part(variables.get(found[1])).get("default", "")), str(first.get("url", ""))[:2_000])
    try:
        parts = urlsplit(url)
        is_absolute = parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
    except ValueError:
        return "", ""
    path = parts.path.rstrip("/")
    base = path if path.startswith("/") else ""
    return (f"{parts.scheme}://{parts.netloc}{base}", base) if is_absolute else ("", base)
