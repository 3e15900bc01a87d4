"""Recognises OpenAPI documents, in JSON and YAML."""

import re
from collections.abc import Iterator

from pydantic import JsonValue

from engine.making.openapi.document import DocumentRefused, OpenApiDocument
from engine.making.openapi.operations import operations_of
from engine.making.recognisers.recogniser import is_aside
from engine.making.trees import Tree
from toolagent.contracts.making import Finding, FindingKind

__all__ = ["recognise_openapi"]

_ENDINGS = (".json", ".yaml", ".yml")
_SAYS_SO = re.compile(r"""^[ \t{,]*["']?(?:openapi|swagger)["']?\s*:\s*["']?\d|[{,]\s*"(?:openapi|swagger)"\s*:\s*"\d""", re.MULTILINE)
_MOST_LOOKED_AT = 400
_MOST = 10
_MAX_BYTES = 4 * 1024 * 1024


def recognise_openapi(tree: Tree) -> Iterator[Finding]:
    """`details`: `version`, `title`, `server_url` (absolute, if there is one), `operations`; or `refused`, why it cannot be used."""
    named = [path for path in tree.files if path.name.endswith(_ENDINGS) and not path.name.startswith(".")]
    likely = sorted(named, key=lambda path: not re.search(r"openapi|swagger|api", path.name, re.IGNORECASE))
    texts = ((path.as_posix(), tree.text(path, _MAX_BYTES)) for path in likely[:_MOST_LOOKED_AT])
    found: list[Finding] = []
    for path, text in texts:
        if text is not None and _SAYS_SO.search(text):
            found.append(_finding(path, text))
            if len(found) == _MOST:
                break
    yield from sorted(found, key=lambda one: ("refused" in one.details, is_aside(one.path), one.path.count("/")))


def _finding(path: str, text: str) -> Finding:
    try:
        document = OpenApiDocument.read(text, is_json=path.endswith(".json"))
        read = operations_of(document)
    except DocumentRefused as refusal:
        summary = f"An OpenAPI document that cannot be used: {refusal}"
        return Finding(kind=FindingKind.OPENAPI, path=path, summary=summary, details={"refused": str(refusal)})
    count = len(read.operations)
    details: dict[str, JsonValue] = {"version": document.version, "title": document.title, "operations": count}
    if document.server_url:
        details["server_url"] = document.server_url
    summary = f"OpenAPI {document.version}, {document.title!r}: {count} operations can be tools, {len(read.left_out)} cannot."
    return Finding(kind=FindingKind.OPENAPI, path=path, summary=summary, details=details)
