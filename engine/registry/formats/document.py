"""Reading a catalog file and naming what is wrong with it."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar, cast

from pydantic import BaseModel, JsonValue, ValidationError

from engine.registry.formats.literal_keys import Hidden, without_keys
from engine.registry.secret_vault import SecretVault
from toolagent.contracts.records import CatalogFault
from toolagent.core.suggestions import nearest

__all__ = ["Parsed", "cleaned", "faults_of", "members", "misspelled_fields", "read_object", "unreadable"]

T = TypeVar("T")
_MAX_BYTES = 50_000_000
_MAX_DEPTH = 100


@dataclass(slots=True)
class Parsed(Generic[T]):
    """What could be used of a file, by id, and what could not.

    `raws` are the entries as the file has them, but for literal keys; `envelope` is what stands beside them. `mentioned` are the ids of
    entries that are there, usable or not, in order; `readable` is False when the file could not be read at all.
    """

    entries: dict[str, T] = field(default_factory=dict[str, T])
    raws: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    faults: list[CatalogFault] = field(default_factory=list[CatalogFault])
    mentioned: dict[str, None] = field(default_factory=dict[str, None])
    envelope: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    readable: bool = True


class _NotUsableError(ValueError):
    """`where` is a path or a key."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(reason)
        self.where = where


def read_object(path: Path) -> dict[str, JsonValue] | CatalogFault:
    """The JSON object in a file, or why there is none."""
    try:
        document = _read(path)
    except UnicodeDecodeError as error:
        return unreadable(path.name, "$", f"The file is not UTF-8 text (byte {error.start}).")
    except json.JSONDecodeError as error:
        return unreadable(path.name, "$", f"Not JSON: {error.msg} at line {error.lineno}, column {error.colno}.")
    except _NotUsableError as error:
        return unreadable(path.name, error.where, str(error))
    except ValueError:
        return unreadable(path.name, "$", "The file holds a number with more than 4300 digits.")
    except RecursionError:
        return unreadable(path.name, "$", "The JSON is nested too deeply.")
    except OSError as error:
        return unreadable(path.name, "$", f"The file cannot be read: {error.strerror}.")
    return document


def _read(path: Path) -> dict[str, JsonValue]:
    if path.stat().st_size > _MAX_BYTES:
        raise _NotUsableError("$", f"The file is larger than {_MAX_BYTES // 1_000_000} MB.")
    document = _parse(path.read_text(encoding="utf-8-sig"))
    if not isinstance(document, dict):
        raise _NotUsableError("$", "The file must hold a JSON object.")
    return document


def unreadable(file: str, where: str, reason: str) -> CatalogFault:
    return CatalogFault(file=file, field=where, reason=reason)


def members(document: dict[str, JsonValue], name: str, file: str) -> list[JsonValue] | CatalogFault:
    """The list under a key, or what is there instead."""
    found = document.get(name)
    if isinstance(found, list):
        return found
    return unreadable(file, f"$.{name}", "A list is expected here." if name in document else "This list is missing.")


def cleaned(item: JsonValue, owner: str, file: str, where: str, vault: SecretVault) -> Hidden:
    """The entry, if it can be stored anywhere, without its literal keys."""
    flaw = _flaw_of(item)
    if flaw is not None:
        return Hidden(None, [unreadable(file, where, flaw)], refused=True)
    return without_keys(item, owner, file, where, vault)


def faults_of(error: ValidationError, file: str, where: str) -> Iterator[CatalogFault]:
    """One fault for each thing that is wrong with an entry."""
    for issue in error.errors(include_url=False, include_input=False):
        path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in issue["loc"])
        yield CatalogFault(file=file, field=f"{where}{path}", reason=issue["msg"])


def misspelled_fields(model: BaseModel, item: JsonValue, file: str, where: str) -> Iterator[CatalogFault]:
    """One fault for each key of an entry, also in its parts, that its model does not know and that looks like one that it does.

    Other keys are somebody else's: they are kept, and nothing is said of them.
    """
    if not isinstance(item, dict):
        return
    fields = type(model).model_fields
    names = {name: name for name in fields} | {field.alias: name for name, field in fields.items() if field.alias}
    for key, value in item.items():
        if key in names:
            for inner, raw, index in _models(getattr(model, names[key]), value):
                yield from misspelled_fields(inner, raw, file, f"{where}.{key}{index}")
        elif near := nearest(key, names.keys() - item.keys(), limit=1) if len(key) > 2 else ():
            reason = f"Nothing here is called {key!r}; it is kept and has no effect. Did you mean {near[0]!r}?"
            yield CatalogFault(file=file, field=f"{where}.{key}", reason=reason)


def _models(part: object, value: JsonValue) -> Iterator[tuple[BaseModel, JsonValue, str]]:
    """A model, or those in a list, each with what it was read from and its index."""
    if isinstance(part, BaseModel):
        yield part, value, ""
    elif isinstance(part, tuple) and isinstance(value, list):
        inners = cast("tuple[object, ...]", part)
        for index, (inner, item) in enumerate(zip(inners, value, strict=True)):
            if isinstance(inner, BaseModel):
                yield inner, item, f"[{index}]"


def _flaw_of(item: JsonValue) -> str | None:
    """Why an entry can be kept nowhere. Without recursion: it may be deep."""
    level: list[JsonValue] = [item]
    for _ in range(_MAX_DEPTH):
        below: list[JsonValue] = []
        for one in level:
            if isinstance(one, dict):
                below += [*one, *one.values()]
            elif isinstance(one, list):
                below += one
            elif isinstance(one, str) and (flaw := _flaw_of_text(one)):
                return flaw
        if not below:
            return None
        level = below
    return f"This entry is nested deeper than {_MAX_DEPTH} levels."


def _flaw_of_text(text: str) -> str | None:
    if "\0" in text:
        return "A text in this entry holds the character NUL (\\u0000), which cannot be stored."
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        return "A text in this entry holds half a character (a lone surrogate, \\ud800 to \\udfff)."
    return None


def _parse(text: str) -> JsonValue:
    return json.loads(text, object_pairs_hook=_object, parse_constant=_no_number, parse_float=_number)


def _object(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))
        raise _NotUsableError(f"$..{twice}", "The key occurs twice in one object.")
    return made


def _no_number(name: str) -> float:
    raise _NotUsableError("$", f"Not JSON: {name} is no number.")


def _number(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _NotUsableError("$", f"The number {text[:40]} is too large.")
    return number
