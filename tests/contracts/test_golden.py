"""Payloads of every release are still read, with the same meaning."""

import copy
from pathlib import Path
from typing import cast

import pytest
from pydantic import JsonValue

from tests.contracts import golden
from tests.contracts.compatibility import contains, losses
from tests.contracts.wire import Schema, definitions, wire_contracts

RELEASES = sorted(path for path in golden.FOLDER.iterdir() if path.is_dir())
REMEDY = "If it was meant, and the release is not out yet: `python -m tests.contracts.golden`, and look at the difference."
OBJECT: Schema = {"type": "object", "properties": {"a": {"type": "string", "default": "x"}, "b": {"enum": [1, 2]}}, "required": ["b"]}


def _unread(name: str, payload: JsonValue) -> bool:
    """Whether today's model drops something of a payload."""
    read = wire_contracts()[name].model_validate(payload)
    return not contains(read.model_dump(mode="json"), payload)


@pytest.mark.parametrize("folder", RELEASES, ids=lambda folder: folder.name)
def test_every_payload_of_a_release_is_read_whole(folder: Path) -> None:
    payloads, _ = golden.read(folder)
    assert payloads
    assert [name for name in payloads if name not in wire_contracts()] == []
    assert [f"{name} ({kind})" for name, kinds in payloads.items() for kind, payload in kinds.items() if _unread(name, payload)] == []


@pytest.mark.parametrize("folder", RELEASES, ids=lambda folder: folder.name)
def test_nothing_of_a_release_was_renamed_retyped_or_removed(folder: Path) -> None:
    _, schemas = golden.read(folder)
    found = losses(schemas, definitions())
    assert found == [], REMEDY


def test_the_payloads_of_this_release_are_those_of_today() -> None:
    payloads, schemas = golden.read(golden.FOLDER / golden.release())
    today = golden.current()
    assert sorted(f"{name}.json" for name in payloads) == sorted(set(today) - {golden.SCHEMAS}), "Run `python -m tests.contracts.golden`."
    stale = [name for name, content in today.items() if content != (schemas if name == golden.SCHEMAS else payloads[name[:-5]])]
    assert stale == [], "Something was added: run `python -m tests.contracts.golden`."


def _changed(path: str, value: JsonValue) -> Schema:
    """OBJECT with the value at a dotted path set, or removed for None."""
    schema = copy.deepcopy(OBJECT)
    *parents, last = path.split(".")
    place = schema
    for parent in parents:
        place = cast("Schema", place.setdefault(parent, {}))
    if value is None:
        del place[last]
    else:
        place[last] = value
    return schema


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("properties.a", None),
        ("properties.a.type", "integer"),
        ("properties.a.type", None),
        ("properties.a.default", "y"),
        ("properties.a.default", None),
        ("properties.a.maxLength", 3),
        ("properties.a.enum", ["x"]),
        ("properties.b.enum", [1]),
        ("required", ["a", "b"]),
        ("properties.a", {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
    ],
)
def test_a_change_of_meaning_is_caught(path: str, value: JsonValue) -> None:
    assert losses({"M": OBJECT}, {"M": _changed(path, value)})


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("properties.c", {"type": "string", "default": ""}),
        ("properties.a.description", "words"),
        ("properties.b.enum", [1, 2, 3]),
        ("properties.a", {"anyOf": [{"type": "string"}, {"type": "null"}], "default": "x"}),
    ],
)
def test_growth_passes(path: str, value: JsonValue) -> None:
    assert losses({"M": OBJECT}, {"M": _changed(path, value), "N": {}}) == []


def test_a_removed_model_and_a_new_field_that_must_be_given_are_caught() -> None:
    needy: Schema = {**_changed("properties.c", {"type": "string"}), "required": ["b", "c"]}
    assert losses({"M": OBJECT}, {}) == ["M: removed"]
    assert losses({"M": OBJECT}, {"M": needy}) == ["M.c: must be given now"]


def test_a_renamed_field_leaves_a_payload_that_is_not_read_whole() -> None:
    assert _unread("ToolCall", {"tool_id": "echo", "renamed": 1})
    assert not _unread("ToolCall", {"tool_id": "echo", "stream": True})
