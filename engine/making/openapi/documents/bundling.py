"""Joins a document that is split into several files of the repository; reads nothing outside of it."""

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from posixpath import normpath
from urllib.parse import unquote

from pydantic import JsonValue

from engine.making.openapi.documents.document import DocumentRefused

_MOST_PARTS = 1_000_000
_ENDINGS = (".json", ".yaml", ".yml")
_WHERE = "x-files"


def files_referred_to(value: JsonValue, path: str) -> Iterator[str]:
    """Paths in the repository of the other files that the document at `path` refers to. Blocks."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case dict() as found:
                reference = found.get("$ref")
                if isinstance(reference, str) and (file := _file_of(reference, path)) and file != path:
                    yield file
                waiting += found.values()
            case list() as found:
                waiting += found
            case _:
                pass


def bundled(documents: Mapping[str, JsonValue]) -> JsonValue:
    """The first of these documents (by path) with the others inside. Raises DocumentRefused if the result is too large. Blocks."""
    (first, whole), *others = documents.items()
    places = {first: "#", **{path: f"#/{_WHERE}/{number}" for number, (path, _) in enumerate(others)}}
    writing = _Rewriting(places)
    root = writing.of(whole, first)
    if not others or not isinstance(root, dict):
        return root
    return {**root, _WHERE: {str(number): writing.of(value, path) for number, (path, value) in enumerate(others)}}


class _Rewriting:
    """Rewrites references between files as references within the joined document."""

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places, self._parts = places, 0

    def of(self, value: JsonValue, path: str) -> JsonValue:
        self._parts += 1
        if self._parts > _MOST_PARTS:
            raise DocumentRefused(f"With the files that it refers to it has more than {_MOST_PARTS} parts.")
        match value:
            case dict():
                return {key: self._one(key, inner, path) for key, inner in value.items()}
            case list():
                return [self.of(one, path) for one in value]
            case _:
                return value

    def _one(self, key: str, value: JsonValue, path: str) -> JsonValue:
        if key != "$ref" or not isinstance(value, str):
            return self.of(value, path)
        file = _file_of(value, path)
        if file is None or file not in self._places:
            return value
        return f"{self._places[file]}{value.partition('#')[2]}"


def _file_of(reference: str, path: str) -> str | None:
    """The path of the file that a reference in the file at `path` leads to; None if it cannot be a file of the repository."""
    name = unquote(reference.partition("#")[0])
    if not name:
        return path
    if "://" in name or name.startswith("/") or not name.endswith(_ENDINGS):
        return None
    found = normpath(str(PurePosixPath(path).parent / name))
    return None if found.startswith("../") else found
