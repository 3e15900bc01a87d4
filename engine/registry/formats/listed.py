"""Files with one list of entries by id: `groups.json`, `containers.json`."""

from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, JsonValue, ValidationError

from engine.registry.formats.document import Parsed
from engine.registry.formats.overlay import overlaid, written
from engine.registry.formats.state import Document, in_order
from engine.registry.secret_vault import SecretVault
from engine.store.catalog_files import CatalogFile

ModelT = TypeVar("ModelT", bound=BaseModel)


def parse_list(path: Path, vault: SecretVault, key: str, id_field: str, model: type[ModelT]) -> Parsed[ModelT]:
    """Parse the file. The first of two entries with one id counts."""
    parsed = Parsed[ModelT](path.name, vault)
    for index, item in enumerate(parsed.open(path, key, list[JsonValue])):
        where = f"$.{key}[{index}]"
        entry_id = item.get(id_field) if isinstance(item, dict) else None
        if isinstance(entry_id, str) and entry_id in parsed.mentioned:
            parsed.fault(f"{where}.{id_field}", f"There is already an entry {entry_id!a} in this file.")
            continue
        clean = parsed.cleaned(item, str(entry_id), where)
        if isinstance(entry_id, str) and clean.item is not None:
            parsed.mentioned[entry_id] = None
        if not clean.refused and (entry := parsed.valid(model.model_validate, clean.item, where)) is not None:
            parsed.note_misspelled(entry, clean.item, where)
            parsed.entries[str(entry_id)] = entry
            parsed.raws[str(entry_id)] = clean.item
    return parsed


def dump_list(
    known: Iterable[tuple[str, ModelT, JsonValue]], file: CatalogFile | None, key: str, always: frozenset[str]
) -> Document | None:
    """The entries as in the file, except for changes."""
    entries = {entry_id: (entry, raw) for entry_id, entry, raw in known}
    if file is None and not entries:
        return None
    return {**(file.envelope if file else {}), key: [_written(entry, raw, always) for _, (entry, raw) in in_order(entries, file)]}


def _written(entry: BaseModel, raw: JsonValue, always: frozenset[str]) -> JsonValue:
    if not isinstance(raw, dict):
        return written(entry, always)
    try:
        before = type(entry).model_validate(raw)
    except ValidationError:  # written by another release
        return {**raw, **written(entry, always)}
    return overlaid(raw, before, entry)
