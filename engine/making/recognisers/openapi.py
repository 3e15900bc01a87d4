"""Recognises OpenAPI documents, in JSON and YAML."""

import re
from collections.abc import Iterator

from pydantic import JsonValue

from engine.making.openapi.document import DocumentRefused, OpenApiDocument
from engine.making.openapi.operations import ReadOperations, operations_of
from engine.making.openapi.servers import server_fault
from engine.making.recognisers.recogniser import is_aside
from engine.making.trees import Tree
from toolagent.contracts.making import Finding, FindingKind

__all__ = ["recognise_openapi"]

_ENDINGS = (".json", ".yaml", ".yml")
_SAYS_SO = re.compile(r"""^[ \t{,]*["']?(?:openapi|swagger)["']?\s*:\s*["']?\d|[{,]\s*"(?:openapi|swagger)"\s*:\s*"\d""", re.MULTILINE)
_MOST_LOOKED_AT = 400
_MOST = 10
_MAX_BYTES = 4 * 1024 * 1024
_MOST_NAMED = 3
_IS_ONE = re.compile(r"(?:openapi|swagger)\b", re.IGNORECASE)


def recognise_openapi(tree: Tree) -> Iterator[Finding]:
    """`details`: `version`, `title`, `server_url` (absolute, if there is one), `operations`, and `fault`, why it alone makes no tools.

    Or `refused`, why it cannot be used at all.
    """
    named = [path for path in tree.files if path.name.endswith(_ENDINGS) and not path.name.startswith(".")]
    likely = sorted(named, key=lambda path: not re.search(r"openapi|swagger|api", path.name, re.IGNORECASE))
    found = [_too_large(path.as_posix()) for path in likely[:_MOST] if _IS_ONE.match(path.name) and tree.size_of(path) > _MAX_BYTES]
    for path, text in ((path.as_posix(), tree.text(path, _MAX_BYTES)) for path in likely[:_MOST_LOOKED_AT]):
        if text is not None and _SAYS_SO.search(text):
            found.append(_finding(path, text))
            if len(found) >= _MOST:
                break
    yield from sorted(found, key=lambda one: ("refused" in one.details, is_aside(one.path), one.path.count("/")))


def _too_large(path: str) -> Finding:
    return _refused(path, f"It is larger than {_MAX_BYTES >> 20} MiB. Leave out of it what is not to be called.")


def _refused(path: str, why: str) -> Finding:
    summary = f"An OpenAPI document that cannot be used: {why}"
    return Finding(kind=FindingKind.OPENAPI, path=path, summary=summary, details={"refused": why})


def _finding(path: str, text: str) -> Finding:
    try:
        document = OpenApiDocument.read(text, is_json=path.endswith(".json"))
        read = operations_of(document)
    except DocumentRefused as refusal:
        return _refused(path, str(refusal))
    count = len(read.operations)
    details: dict[str, JsonValue] = {"version": document.version, "title": document.title, "operations": count}
    if document.server_url:
        details["server_url"] = document.server_url
    if fault := server_fault(document) or _without_tools(read):
        details["fault"] = fault
    summary = f"OpenAPI {document.version}, {document.title!r}: {count} operations can be tools, {len(read.left_out)} cannot."
    return Finding(kind=FindingKind.OPENAPI, path=path, summary=summary, details=details)


def _without_tools(read: ReadOperations) -> str:
    """Why none of its operations can be a tool; empty where one can."""
    if read.operations:
        return ""
    if not read.left_out:
        return "It describes no operation."
    named = " ".join(f"{one.operation}: {one.reason}" for one in read.left_out[:_MOST_NAMED])
    more = len(read.left_out) - _MOST_NAMED
    return f"None of its operations can be a tool. {named}{f' And {more} more.' if more > 0 else ''}"
