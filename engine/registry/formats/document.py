"""Reads a catalog file and names its faults."""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Generic, TypeVar, cast, get_origin

from pydantic import BaseModel, JsonValue, ValidationError

from engine.registry.formats.literal_keys import Hidden, without_keys
from engine.registry.secret_vault import SecretVault
from toolagent.contracts.records import CatalogFault
from toolagent.core.json_paths import json_path
from toolagent.core.suggestions import nearest
from toolagent.core.texts import shortened

T = TypeVar("T")
Valid = TypeVar("Valid")
Entries = TypeVar("Entries", list[JsonValue], dict[str, JsonValue])
_MAX_BYTES = 32_000_000
_MAX_ENTRIES = 100_000
_MAX_PARTS = 100_000
_MAX_CHARACTERS = 2_000_000
_MAX_DEPTH = 100
_MAX_SHOWN = 1_000
_MAX_FAULTS = 10
_MAX_STRANGERS = 50
_HALF_A_CHARACTER = re.compile("[\ud800-\udfff]")


@dataclass(slots=True)
class Parsed(Generic[T]):
    """The usable entries of a file, by id, and its faults.

    `raws` are the entries as in the file, without literal keys. `envelope` is the document without its entries. `mentioned` are the ids
    of all entries, usable or not, in order. `readable` is False if the file could not be read.
    """

    file: str
    vault: SecretVault
    entries: dict[str, T] = field(default_factory=dict[str, T])
    raws: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    faults: list[CatalogFault] = field(default_factory=list[CatalogFault])
    mentioned: dict[str, None] = field(default_factory=dict[str, None])
    envelope: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    readable: bool = True
    is_there: bool = True

    def open(self, path: Path, key: str, kind: type[Entries], versions: tuple[str, ...] = ()) -> Entries:
        """Read the file and return the entries under this key; what is beside them becomes the envelope. Nothing where it has none.

        `versions` are the known versions of the file's format.
        """
        try:
            document = _read(path)
            entries = _entries(document, key, kind)
        except _NotUsableError as error:
            self.fault(error.where, str(error))
            self.readable = False
            return kind()
        if versions and document.get("version", versions[0]) not in versions:
            known = f"known: {', '.join(versions)}. It was read as {versions[-1]}."
            self.fault("$.version", f"Unknown format version {str(document['version'])[:40]!r}; {known}")
        envelope = self.cleaned({**document, key: None}, "catalog", "$").item
        self.envelope = envelope if isinstance(envelope, dict) else {}
        return entries

    def fault(self, where: str, reason: str) -> None:
        self.faults.append(CatalogFault(file=self.file, field=where, reason=reason))

    def cleaned(self, item: JsonValue, owner: str, where: str) -> Hidden:
        """`cleaned`, with its faults noted."""
        hidden = cleaned(item, owner, self.file, where, self.vault)
        self.faults += hidden.faults
        return hidden

    def valid(self, validate: Callable[[JsonValue], Valid], item: JsonValue, where: str) -> Valid | None:
        """The model of an entry; None with its faults noted."""
        try:
            return validate(item)
        except ValidationError as error:
            self.faults += faults_of(error, self.file, where)
            return None

    def note_misspelled(self, model: BaseModel, item: JsonValue, where: str) -> None:
        self.faults += misspelled_fields(model, item, self.file, where)


class _NotUsableError(ValueError):
    """The file cannot be used. `where` is a path or a key."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(reason)
        self.where = where


def _read(path: Path) -> dict[str, JsonValue]:
    """The JSON object in a file. Raises _NotUsableError."""
    try:
        return _parsed(path)
    except UnicodeDecodeError as error:
        raise _NotUsableError("$", f"The file is not UTF-8 text (byte {error.start}).") from error
    except json.JSONDecodeError as error:
        raise _NotUsableError("$", f"Not JSON: {error.msg} at line {error.lineno}, column {error.colno}.") from error
    except _NotUsableError:
        raise
    except ValueError as error:
        raise _NotUsableError("$", "The file holds a number with more than 4300 digits.") from error
    except RecursionError as error:
        raise _NotUsableError("$", "The JSON is nested too deeply.") from error
    except OSError as error:
        raise _NotUsableError("$", f"The file cannot be read: {error.strerror}.") from error


def _parsed(path: Path) -> dict[str, JsonValue]:
    if path.stat().st_size > _MAX_BYTES:
        raise _NotUsableError("$", f"The file is larger than {_MAX_BYTES // 1_000_000} MB.")
    text = path.read_text(encoding="utf-8-sig")
    document: JsonValue = json.loads(text, object_pairs_hook=_object, parse_constant=_no_number, parse_float=_number)
    if not isinstance(document, dict):
        raise _NotUsableError("$", "The file must hold a JSON object.")
    return document


def _entries(document: dict[str, JsonValue], key: str, kind: type[Entries]) -> Entries:
    """The list or object under a key. At most so many entries as can be read in bounded time."""
    found, is_list = document.get(key), get_origin(kind) is list
    if not isinstance(found, list if is_list else dict):
        missing = "This list is missing." if is_list and key not in document else None
        raise _NotUsableError(f"$.{key}", missing or f"{'A list' if is_list else 'An object'} is expected here.")
    if len(found) > _MAX_ENTRIES:
        raise _NotUsableError(f"$.{key}", f"There are {len(found)} entries here; at most {_MAX_ENTRIES} are read.")
    return cast("Entries", found)


def shown(fault: CatalogFault) -> CatalogFault:
    """The fault with a field and a reason that can be stored and printed: they quote the file."""
    return fault.model_copy(update={"field": _printable(fault.field), "reason": _printable(fault.reason)})


def _printable(text: str) -> str:
    text = shortened(text, _MAX_SHOWN)
    return text if text.isprintable() else "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def cleaned(item: JsonValue, owner: str, file: str, where: str, vault: SecretVault) -> Hidden:
    """The entry without its literal keys; refused if it cannot be stored."""
    flaw = _flaw_of(item)
    if flaw is not None:
        return Hidden(None, [CatalogFault(file=file, field=where, reason=flaw)], refused=True)
    return without_keys(item, owner, file, where, vault)


def faults_of(error: ValidationError, file: str, where: str) -> Iterator[CatalogFault]:
    """A fault for each error of an entry, up to a limit."""
    for issue in error.errors(include_url=False, include_input=False)[:_MAX_FAULTS]:
        yield CatalogFault(file=file, field=json_path(issue["loc"], where), reason=issue["msg"])
    if (more := error.error_count() - _MAX_FAULTS) > 0:
        yield CatalogFault(file=file, field=where, reason=f"{more} more things are wrong with this entry.")


def misspelled_fields(model: BaseModel, item: JsonValue, file: str, where: str) -> Iterator[CatalogFault]:
    """A fault for each unknown key of an entry or its parts that resembles a known one.

    Other unknown keys are kept without a fault.
    """
    if not isinstance(item, dict):
        return
    fields = type(model).model_fields
    names = {name: name for name in fields} | {field.alias: name for name, field in fields.items() if field.alias}
    for key in names.keys() & item.keys():
        for inner, raw, index in _models(getattr(model, names[key]), item[key]):
            yield from misspelled_fields(inner, raw, file, f"{where}.{key}{index}")
    # Limited: comparisons take time, and thousands of keys are no misspellings.
    for key in islice((key for key in item if key not in names), _MAX_STRANGERS):
        if near := nearest(key, names.keys() - item.keys(), limit=1) if 2 < len(key) <= 100 else ():
            reason = f"Nothing here is called {key!r}; it is kept and has no effect. Did you mean {near[0]!r}?"
            yield CatalogFault(file=file, field=f"{where}.{key}", reason=reason)


def _models(part: object, value: JsonValue) -> Iterator[tuple[BaseModel, JsonValue, str]]:
    """A model, or the models in a list, each with its source value and its index."""
    if isinstance(part, BaseModel):
        yield part, value, ""
    elif isinstance(part, tuple) and isinstance(value, list):
        inners = cast("tuple[object, ...]", part)
        for index, (inner, item) in enumerate(zip(inners, value, strict=True)):
            if isinstance(inner, BaseModel):
                yield inner, item, f"[{index}]"


def _flaw_of(item: JsonValue) -> str | None:
    """Why an entry cannot be stored, or None. Not recursive: it may be deep."""
    level: list[JsonValue] = [item]
    parts = characters = 0
    for _ in range(_MAX_DEPTH):
        parts += len(level)
        if parts > _MAX_PARTS:
            return f"This entry has more than {_MAX_PARTS} parts."
        texts = [one for one in level if isinstance(one, str)]
        if flaw := next(filter(None, map(_flaw_of_text, texts)), None):
            return flaw
        below = [part for one in level for part in _parts_of(one)]
        characters += sum(map(len, texts))
        if characters > _MAX_CHARACTERS:
            return f"This entry has more than {_MAX_CHARACTERS} characters of text. Put what is large into a file."
        if not below:
            return None
        level = below
    return f"This entry is nested deeper than {_MAX_DEPTH} levels."


def _parts_of(item: JsonValue) -> Iterable[JsonValue]:
    if isinstance(item, dict):
        return (*item, *item.values())
    return item if isinstance(item, list) else ()


def _flaw_of_text(text: str) -> str | None:
    if "\0" in text:
        return "A text in this entry holds the character NUL (\\u0000), which cannot be stored."
    if not text.isascii() and _HALF_A_CHARACTER.search(text):
        return "A text in this entry holds half a character (a lone surrogate, \\ud800 to \\udfff)."
    return None


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
