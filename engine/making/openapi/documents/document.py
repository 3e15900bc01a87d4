"""An OpenAPI document of version 3.0 or 3.1, or of Swagger 2, and its references."""

import re
from dataclasses import dataclass, replace
from typing import Self, cast
from urllib.parse import unquote, urlsplit

from pydantic import JsonValue

from engine.making.json_values import Part, items, part
from engine.making.openapi.documents.parsing import NotReadable, parsed_json, parsed_yaml
from engine.making.openapi.documents.swagger2 import as_openapi_3
from toolagent.core.texts import well_formed_json

_VERSION = re.compile(r"3\.[01](\.\d+)?([-.].*)?")
_VARIABLE = re.compile(r"\{([^{}]+)\}")
_MAX_CHAIN = 20
_MOST_SERVERS = 20
_LONGEST_TITLE = 200


class DocumentRefused(ValueError):
    """The document cannot be used; the message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class OpenApiDocument:
    """`server_url` is absolute, or empty; `base_path` is the path of the first server, without a slash at its end.

    `is_served_elsewhere`: the task names the server, and the document's own servers do not count.
    """

    root: Part
    version: str
    title: str
    server_url: str
    base_path: str
    is_31: bool = True
    is_served_elsewhere: bool = False

    @classmethod
    def read(cls, text: str, *, is_json: bool) -> Self:
        """Raises DocumentRefused. Blocks."""
        return cls.of(parsed(text, is_json=is_json))

    @classmethod
    def of(cls, value: JsonValue) -> Self:
        """Raises DocumentRefused."""
        root = part(value)
        said = str(root.get("swagger" if "swagger" in root else "openapi", ""))[:20]
        if "swagger" in root and said.startswith("2"):
            root = as_openapi_3(root, lambda reference: _at(part(value), reference))
        version = str(root.get("openapi", ""))[:20]
        if not _VERSION.fullmatch(version):
            raise DocumentRefused(f"This is no OpenAPI document of version 3.0 or 3.1, and none of Swagger 2: its version is {said!r}.")
        if not isinstance(root.get("paths"), dict):
            raise DocumentRefused("The document has no `paths`: it describes nothing that could be called.")
        title = part(root.get("info")).get("title")
        server, base = server_of(root.get("servers"))
        return cls(root, said, str(title)[:_LONGEST_TITLE] if title else "untitled", server, base, version.startswith("3.1"))

    def served_at(self, url: str) -> Self:
        """The document with all operations at this address."""
        server, base = server_of([{"url": url}])
        return replace(self, server_url=server, base_path=base, is_served_elsewhere=True)

    def resolved(self, value: JsonValue) -> Part:
        """The object, or the target of its `$ref`. Raises DocumentRefused if a reference leads nowhere or out of the document."""
        for _ in range(_MAX_CHAIN):
            found = part(value)
            reference = found.get("$ref")
            if not isinstance(reference, str):
                return found
            value = self.at(reference)
        raise DocumentRefused("A reference leads to a reference, and so on without end.")

    def at(self, reference: str) -> JsonValue:
        """The target of a reference. Raises DocumentRefused."""
        return _at(self.root, reference)


def parsed(text: str, *, is_json: bool) -> JsonValue:
    """Raises DocumentRefused. Blocks."""
    try:
        mended = well_formed_json(text.encode("utf-8", "replace")).decode() if is_json else text
        return cast("JsonValue", parsed_json(mended) if is_json else parsed_yaml(mended))
    except NotReadable as error:
        raise DocumentRefused(str(error)) from error


def server_of(servers: JsonValue) -> tuple[str, str]:
    """The address and the path of the first server with an absolute address; variables get their defaults.

    If no address is absolute, an empty address and the first server's path.
    """
    found = [_server(part(one)) for one in items(servers)[:_MOST_SERVERS]] or [("", "")]
    return next((one for one in found if one[0]), found[0])


def _server(server: Part) -> tuple[str, str]:
    variables = part(server.get("variables"))
    url = _VARIABLE.sub(lambda found: str(part(variables.get(found[1])).get("default", "")), str(server.get("url", ""))[:2_000])
    try:
        parts = urlsplit(url)
        is_absolute = parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
    except ValueError:
        return "", ""
    path = parts.path.rstrip("/")
    base = path if path.startswith("/") else ""
    return (f"{parts.scheme}://{parts.netloc}{base}", base) if is_absolute else ("", base)


def _at(root: Part, reference: str) -> JsonValue:
    """Raises DocumentRefused."""
    if not reference.startswith("#/"):
        raise DocumentRefused(
            f"{reference[:200]!r} leads to another document, which is no file of the repository that can be read. Put all into one."
        )
    found: JsonValue = dict(root)
    for step in unquote(reference[2:]).split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and name in found:
            found = found[name]
        elif isinstance(found, list) and name.isdecimal() and int(name) < len(found):
            found = found[int(name)]
        else:
            raise DocumentRefused(f"{reference[:200]!r} refers to what is not in the document.")
    return found
