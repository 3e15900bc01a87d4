"""Reading a catalog file and naming what is wrong with it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar, cast

from pydantic import BaseModel, JsonValue, ValidationError

from toolagent.contracts.records import CatalogFault

__all__ = ["Parsed", "faults_of", "members", "read_object", "unknown_fields"]

T = TypeVar("T")
_MAX_BYTES = 50_000_000


@dataclass(slots=True)
class Parsed(Generic[T]):
    """What could be used of a file, by id, and what could not.

    `mentioned` are the ids of entries that are there, usable or not; `readable` is False when the file could not be read at all.
    """

    entries: dict[str, T] = field(default_factory=dict[str, T])
    faults: list[CatalogFault] = field(default_factory=list[CatalogFault])
    mentioned: set[str] = field(default_factory=set[str])
    readable: bool = True


class _DuplicateKeyError(ValueError):
    pass


def read_object(path: Path) -> dict[str, JsonValue] | CatalogFault:
    """The JSON object in a file, or why there is none."""
    try:
        if path.stat().st_size > _MAX_BYTES:
            return CatalogFault(file=path.name, field="$", reason=f"The file is larger than {_MAX_BYTES // 1_000_000} MB.")
        document: JsonValue = json.loads(path.read_text(encoding="utf-8-sig"), object_pairs_hook=_object)
    except UnicodeDecodeError as error:
        return CatalogFault(file=path.name, field="$", reason=f"The file is not UTF-8 text (byte {error.start}).")
    except json.JSONDecodeError as error:
        return CatalogFault(file=path.name, field="$", reason=f"Not JSON: {error.msg} at line {error.lineno}, column {error.colno}.")
    except _DuplicateKeyError as error:
        return CatalogFault(file=path.name, field=f"$..{error}", reason="The key occurs twice in one object.")
    except RecursionError:
        return CatalogFault(file=path.name, field="$", reason="The JSON is nested too deeply.")
    except OSError as error:
        return CatalogFault(file=path.name, field="$", reason=f"The file cannot be read: {error.strerror}.")
    if not isinstance(document, dict):
        return CatalogFault(file=path.name, field="$", reason="The file must hold a JSON object.")
    return document


def members(document: dict[str, JsonValue], name: str, file: str) -> list[JsonValue] | CatalogFault:
    """The list under a key, or what is there instead."""
    found = document.get(name)
    if isinstance(found, list):
        return found
    return CatalogFault(file=file, field=f"$.{name}", reason="A list is expected here." if name in document else "This list is missing.")


def faults_of(error: ValidationError, file: str, where: str) -> Iterator[CatalogFault]:
    """One fault for each thing that is wrong with an entry."""
    for issue in error.errors(include_url=False, include_input=False):
        path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in issue["loc"])
        yield CatalogFault(file=file, field=f"{where}{path}", reason=issue["msg"])


def unknown_fields(model: BaseModel, item: JsonValue, file: str, where: str) -> Iterator[CatalogFault]:
    """One fault for each key of an entry that its model does not know, also in the parts of it that are models."""
    if not isinstance(item, dict):
        return
    fields = type(model).model_fields
    names = {name: name for name in fields} | {field.alias: name for name, field in fields.items() if field.alias}
    for key, value in item.items():
        if key not in names:
            yield CatalogFault(file=file, field=f"{where}.{key}", reason=f"Nothing here is called {key!r}; it was ignored.")
            continue
        for inner, raw, index in _models(getattr(model, names[key]), value):
            yield from unknown_fields(inner, raw, file, f"{where}.{key}{index}")


def _models(part: object, value: JsonValue) -> Iterator[tuple[BaseModel, JsonValue, str]]:
    """A model, or those in a list, each with what it was read from and its index."""
    if isinstance(part, BaseModel):
        yield part, value, ""
    elif isinstance(part, tuple) and isinstance(value, list):
        inners = cast("tuple[object, ...]", part)
        for index, (inner, item) in enumerate(zip(inners, value, strict=True)):
            if isinstance(inner, BaseModel):
                yield inner, item, f"[{index}]"


def _object(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    keys = [key for key, _ in pairs]
    if len(set(keys)) != len(keys):
        raise _DuplicateKeyError(next(key for index, key in enumerate(keys) if key in keys[:index]))
    return dict(pairs)
