"""Resolves references in schemas, so that a walk along a schema reaches every part."""

import re
from collections.abc import Iterator
from urllib.parse import unquote

from pydantic import JsonValue

from toolagent.contracts.contract import JsonSchema
from toolagent.core.schemas import FOLLOWED, has_meaning

_MAX_PARTS = 20_000
_MAX_DEPTH = 100
_MAX_CHAIN = 20
_MAX_LOOKS = 300_000
"""From one part to another that it refers to."""
_DEFINITIONS = ("$defs", "definitions")
_OF_THE_WHOLE = re.compile(r"\$(\.allOf\[\d+\])*")
"""Paths of parts that say what the schema itself is."""
_REFERENCES = ("$ref", "$dynamicRef")
_DATA = ("default", "examples", "enum", "const")
"""Keywords whose values are no schemas."""
_NOT_FOLLOWED = frozenset(
    {
        "$ref",
        "$dynamicRef",
        "not",
        "contains",
        "propertyNames",
        "unevaluatedProperties",
        "unevaluatedItems",
        "contentSchema",
        "dependencies",
        "additionalItems",
    }
)
_REMARKS = frozenset({"title", "description", "default", "examples", "deprecated", "$comment"})
"""Keywords that may stand beside a reference without changing what is valid."""


class SchemaNotFollowedError(ValueError):
    """The part at `path` is too large, or has files or secrets behind a keyword that is not followed."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path


def written_out(schema: JsonSchema) -> JsonSchema:
    """The schema with every local reference replaced by its target. The order of keys stays; what is written out already stays, too.

    A reference whose target leads back to it stays, unless it says what the schema itself is. It is harmless if no file path and no secret
    is behind it. Raises SchemaNotFollowedError.
    """
    _require_depth(schema)
    result = _WrittenOut(schema).result() if any("$ref" in part for part in _parts(schema)) else schema
    _require_followed(_Meanings(schema), result, "$")
    return result


class _WrittenOut:
    def __init__(self, root: JsonSchema) -> None:
        self._root = root
        self._left = _MAX_PARTS
        self._looks = _MAX_LOOKS
        self._recursive: dict[int, bool] = {}
        self._nexts: dict[int, list[JsonSchema]] = {}
        # References would be relative to a part with its own id.
        self._resolves = not any("$id" in part for part in _parts(root) if part is not root)

    def result(self) -> JsonSchema:
        written = self._schema({key: value for key, value in self._root.items() if key not in _DEFINITIONS}, ("#",), "$")
        if any("$ref" in part or "$dynamicRef" in part for part in _parts(written)):
            return {**written, **{key: self._root[key] for key in _DEFINITIONS if key in self._root}}
        return written

    def _schema(self, schema: JsonSchema, within: tuple[str, ...], path: str) -> JsonSchema:
        self._left -= 1
        if self._left < 0 or len(within) > _MAX_CHAIN or path.count(".") > _MAX_DEPTH:
            raise SchemaNotFollowedError(path, "With its references written out, the schema is too large.")
        reference = schema.get("$ref")
        if isinstance(reference, str) and self._is_open(reference, within, path) and (found := self._target(reference)) is not None:
            beside = {key: value for key, value in schema.items() if key != "$ref"}
            target = self._schema(found, (*within, reference), path)
            if beside.keys() <= _REMARKS:
                return {**target, **beside}
            also = beside.get("allOf")
            return self._values({**beside, "allOf": [*(also if isinstance(also, list) else []), target]}, within, path)
        return self._values(schema, within, path)

    def _values(self, schema: JsonSchema, within: tuple[str, ...], path: str) -> JsonSchema:
        return {key: self._keyword(key, value, within, f"{path}.{key}") for key, value in schema.items()}

    def _keyword(self, keyword: str, value: JsonValue, within: tuple[str, ...], path: str) -> JsonValue:
        if keyword in _DATA:
            return value
        if FOLLOWED.get(keyword) == "named" and isinstance(value, dict):
            return {name: self._value(part, within, f"{path}.{name}") for name, part in value.items()}
        return self._value(value, within, path)

    def _value(self, value: JsonValue, within: tuple[str, ...], path: str) -> JsonValue:
        match value:
            case dict():
                return self._schema(value, within, path)
            case list():
                return [self._value(item, within, f"{path}[{index}]") for index, item in enumerate(value)]
            case _:
                return value

    def _is_open(self, reference: str, within: tuple[str, ...], path: str) -> bool:
        return reference not in within and (_OF_THE_WHOLE.fullmatch(path) is not None or not self._recurs(reference))

    def _recurs(self, reference: str) -> bool:
        """Whether its target leads back to it."""
        if (target := self._target(reference)) is None:
            return False
        if id(target) not in self._recursive:
            self._recursive[id(target)] = self._leads_back(target)
        return self._recursive[id(target)]

    def _leads_back(self, begin: JsonSchema) -> bool:
        seen: set[int] = set()
        waiting = [begin]
        while waiting:
            for target in self._next(waiting.pop()):
                if target is begin:
                    return True
                self._looks -= 1
                if self._looks < 0:
                    raise SchemaNotFollowedError("$", "It has too many references that lead to others.")
                if id(target) not in seen:
                    seen.add(id(target))
                    waiting.append(target)
        return False

    def _next(self, target: JsonSchema) -> list[JsonSchema]:
        """The targets of the references in a part."""
        if id(target) not in self._nexts:
            references = {one for part in _parts(target) if isinstance(one := part.get("$ref"), str)}
            found = [other for other in map(self._target, references) if other is not None]
            self._nexts[id(target)] = list({id(other): other for other in found}.values())
        return self._nexts[id(target)]

    def _target(self, reference: str) -> JsonSchema | None:
        return _target(self._root, reference) if self._resolves else None


def _target(root: JsonSchema, reference: str) -> JsonSchema | None:
    """The target of a JSON pointer (`#`, `#/$defs/x`); None for other references."""
    if reference != "#" and not reference.startswith("#/"):
        return None
    found: JsonValue = root
    for step in reference.split("/")[1:]:
        key = unquote(step).replace("~1", "/").replace("~0", "~")
        match found:
            case dict():
                found = found.get(key)
            case list() if key.isdecimal() and int(key) < len(found):
                found = found[int(key)]
            case _:
                return None
    return found if isinstance(found, dict) else None


def _require_depth(schema: JsonSchema) -> None:
    """Limit the depth, so that the other functions may recurse."""
    level: list[JsonValue] = [schema]
    for _ in range(_MAX_DEPTH):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return
    raise SchemaNotFollowedError("$", f"The schema is nested more than {_MAX_DEPTH} levels deep.")


def _inside(value: JsonValue) -> list[JsonValue]:
    match value:
        case dict():
            return [*value.values()]
        case list():
            return value
        case _:
            return []


class _Meanings:
    """Says where files and secrets are, behind references too."""

    def __init__(self, root: JsonSchema) -> None:
        self._root = root
        self._has_any = any(map(has_meaning, _parts(root)))
        self._without: set[int] = set()

    def behind(self, value: JsonValue) -> bool:
        seen: set[int] = set()
        waiting = [value] if self._has_any else []
        while waiting:
            for part in _parts(waiting.pop()):
                if has_meaning(part):
                    return True
                targets = [self._target(part[name]) for name in _REFERENCES if name in part]
                new = [target for target in targets if id(target) not in seen and id(target) not in self._without]
                seen.update(map(id, new))
                waiting += new
        self._without |= seen
        return False

    def _target(self, reference: JsonValue) -> JsonSchema:
        """The whole schema for another kind of reference, whose target is unknown."""
        return (_target(self._root, reference) if isinstance(reference, str) else None) or self._root


def _require_followed(meanings: _Meanings, schema: JsonValue, path: str) -> None:
    match schema:
        case list():
            for index, item in enumerate(schema):
                _require_followed(meanings, item, f"{path}[{index}]")
        case dict():
            for keyword, value in schema.items():
                _require_keyword(meanings, keyword, value, f"{path}.{keyword}")
        case _:
            pass


def _require_keyword(meanings: _Meanings, keyword: str, value: JsonValue, path: str) -> None:
    kind = FOLLOWED.get(keyword)
    if keyword in _NOT_FOLLOWED:
        if meanings.behind({keyword: value} if keyword in _REFERENCES else value):
            raise SchemaNotFollowedError(path, f"A file path or a secret behind {keyword!r} cannot be followed here; say it without.")
    elif kind == "named" and isinstance(value, dict):
        for name, part in value.items():
            _require_followed(meanings, part, f"{path}.{name}")
    elif kind is not None:
        _require_followed(meanings, value, path)


def _parts(value: JsonValue) -> Iterator[JsonSchema]:
    """Every object in a document, including itself. Not recursive: it may be deep."""
    waiting: list[JsonValue] = [value]
    while waiting:
        match waiting.pop():
            case dict() as part:
                yield part
                waiting.extend(part.values())
            case list() as items:
                waiting.extend(items)
            case _:
                pass
