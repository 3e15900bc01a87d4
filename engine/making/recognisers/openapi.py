"""Recognises OpenAPI documents, in JSON and YAML."""

import re
from collections.abc import Iterator

from engine.making.openapi.documents.document import DocumentRefused, OpenApiDocument
from engine.making.openapi.documents.reading import MAX_BYTES, SMALL_BYTES
from engine.making.openapi.findings import document_finding, refused_document, unread_document
from engine.making.repositories.asides import is_aside
from engine.making.repositories.trees import Tree
from toolagent.contracts.making import Finding

_ENDINGS = (".json", ".yaml", ".yml")
_SAYS_SO = re.compile(r"""^[ \t{,]*["']?(?:openapi|swagger)["']?\s*:\s*["']?\d|[{,]\s*"(?:openapi|swagger)"\s*:\s*"\d""", re.MULTILINE)
_MOST_LOOKED_AT = 400
_MOST = 10
_MOST_OTHERS = 5
_MOST_BYTES = 256 * 1024 * 1024
"""Limit for all files together; files with likely names come first."""
_TOO_LARGE = f"It is larger than {MAX_BYTES >> 20} MiB. Leave out of it what is not to be called."
_REFERS_ELSEWHERE = re.compile(r"""\$ref["']?\s*:\s*["']?(?!\w+://)[^#"'\s]""")
_IS_ONE = re.compile(r"(?:openapi|swagger)\b", re.IGNORECASE)
_IS_NAMED = re.compile(r"(?:^|/)(?:openapi|swagger)\.\w+$", re.IGNORECASE)
_SOUNDS_SO = re.compile(r"openapi|swagger|api", re.IGNORECASE)


def recognise_openapi(tree: Tree) -> Iterator[Finding]:
    """`details`: `version`, `title`, `server_url` (absolute, if any), `operations`, and `fault`, why it alone makes no tools.

    Or `refused`, why it cannot be used; or `unread`: it is large or in several files, and is read later.
    """
    named = [path for path in tree.files if path.name.endswith(_ENDINGS) and not path.name.startswith(".")]
    likely = sorted(named, key=lambda path: not _SOUNDS_SO.search(path.name))[:_MOST_LOOKED_AT]
    found: list[Finding] = []
    left = _MOST_BYTES
    for path in likely:
        size = tree.size_of(path)
        if size > MAX_BYTES and _IS_ONE.match(path.name):
            found.append(refused_document(path.as_posix(), _TOO_LARGE))
        if size > min(left, MAX_BYTES):
            continue
        left -= size
        text = tree.text(path, MAX_BYTES)
        if text is not None and _SAYS_SO.search(text):
            found.append(_finding(path.as_posix(), text))
            if sum(map(_is_of_use, found)) == _MOST:
                break
    found.sort(key=lambda one: (not _is_of_use(one), is_aside(one.path), one.path.count("/"), not _IS_NAMED.search(one.path)))
    yield from found[: _MOST + _MOST_OTHERS]


def _is_of_use(finding: Finding) -> bool:
    """Whether it has operations; some documents only have schemas."""
    return "unread" in finding.details or bool(finding.details.get("operations"))


def _finding(path: str, text: str) -> Finding:
    if len(text) > SMALL_BYTES or _REFERS_ELSEWHERE.search(text):
        return unread_document(path)
    try:
        return document_finding(path, OpenApiDocument.read(text, is_json=path.endswith(".json")))
    except DocumentRefused as refusal:
        return refused_document(path, str(refusal))
