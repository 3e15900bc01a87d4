"""Faults of catalog files are named by file and field; the import goes on without loss."""

import asyncio
import json
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from pydantic import JsonValue

from engine.registry.catalog import CatalogImport
from engine.store.containers import ContainerTable
from engine.store.database import Database
from engine.store.faults import FaultTable
from engine.store.groups import GroupTable
from engine.store.tools import ToolTable
from tests.registry.importing import importer_of, write_catalog

TOOL: dict[str, JsonValue] = {"tool_id": "a", "name": "A", "version": "2.0.0"}
ACTS: dict[str, JsonValue] = {**TOOL, "input_schema": {"properties": {"dry_run": {"type": "boolean"}}}}
OLD: dict[str, JsonValue] = {**TOOL, "version": "1.0.0", "sources": []}
SOURCE: dict[str, JsonValue] = {"type": "remote", "remote_url": "http://127.0.0.1:1"}
GROUP: dict[str, JsonValue] = {"group_id": "g", "name": "G", "tool_ids": ["a"]}
CONTAINER: dict[str, JsonValue] = {"container_id": "c", "tool_id": "a", "image": "i"}
GOOD: dict[str, dict[str, JsonValue]] = {
    "registry.json": {"version": "2.0", "tools": [TOOL]},
    "sources.json": {"sources": {"a": [SOURCE]}},
    "groups.json": {"groups": [GROUP]},
    "containers.json": {"containers": [CONTAINER]},
    "versions.json": {"version": "1.0", "versions": {"a": [OLD]}},
}
ENTRIES = {"registry.json": "tools", "sources.json": "sources", "groups.json": "groups", "containers.json": "containers"} | {
    "versions.json": "versions"
}
_BOUND_S = 60.0
_BOUND_BYTES = 1_000_000_000


@dataclass
class Filled:
    """A database after the import of the good files."""

    database: Database
    data: Path
    importer: CatalogImport

    async def run(self) -> set[tuple[str, str]]:
        """The faults: file and field."""
        faults = await self.importer.run(self.data, ())
        assert len(await FaultTable(self.database).list_all()) == len(set(faults))
        return {(fault.file, fault.field) for fault in faults}

    async def write(self, name: str, document: JsonValue) -> set[tuple[str, str]]:
        (self.data / name).write_text(json.dumps(document), "utf-8")
        return await self.run()

    async def state(self) -> tuple[object, ...]:
        tools = ToolTable(self.database)
        return (
            await tools.get("a"),
            [(one.version, one.status) for one in await tools.versions("a")],
            await GroupTable(self.database).list_all(),
            await ContainerTable(self.database).list_stored(),
        )


@pytest.fixture
async def filled(database: Database, tmp_path: Path) -> Filled:
    write_catalog(tmp_path / "data", GOOD)
    made = Filled(database, tmp_path / "data", importer_of(database, tmp_path))
    assert await made.run() == set()
    return made


# What changes nothing needs no database of its own for each that is wrong: making one takes longest.
@pytest.mark.parametrize("name", GOOD)
async def test_a_file_that_cannot_be_read_changes_nothing(filled: Filled, name: str) -> None:
    before, file, key = await filled.state(), filled.data / name, ENTRIES[name]
    text = json.dumps(GOOD[name])
    bad = {
        "half": text[: len(text) // 2].encode(),
        "no object": b"[]",
        "no entries": b"{}",
        "entries are a text": json.dumps({key: "x"}).encode(),
        "a number": json.dumps({key: 1}).encode(),
        "not utf-8": b'{"\xff": 1}',
        "empty": b"",
    }
    for kind, content in bad.items():
        file.write_bytes(content)
        assert await filled.run() == {(name, f"$.{key}" if kind in {"no entries", "entries are a text", "a number"} else "$")}, kind
        assert await filled.state() == before, kind
    file.unlink()
    file.mkdir()
    assert await filled.run() == {(name, "$")}
    assert await filled.state() == before


_NO_ENTRIES: tuple[JsonValue, ...] = (None, True, 1, "text", [], {}, [[]])
_NO_SOURCES: tuple[JsonValue, ...] = (None, True, 1, "text", {}, [None], [1], ["text"], [[]], [{}])


@pytest.mark.parametrize("name", ["registry.json", "groups.json", "containers.json"])
async def test_an_entry_of_the_wrong_type_is_named_and_its_neighbours_stay(filled: Filled, name: str) -> None:
    before, key = await filled.state(), ENTRIES[name]
    good = GOOD[name][key]
    assert isinstance(good, list)
    for wrong in _NO_ENTRIES:
        faults = await filled.write(name, {**GOOD[name], key: [wrong, *good]})
        assert faults, wrong
        assert all(file == name and field.startswith(f"$.{key}[0]") for file, field in faults), (wrong, faults)
        assert await filled.state() == before, wrong


@pytest.mark.parametrize("name", ["sources.json", "versions.json"])
async def test_a_tool_with_something_else_than_a_list_of_objects_is_named(filled: Filled, name: str) -> None:
    before, key = await filled.state(), ENTRIES[name]
    good = GOOD[name][key]
    assert isinstance(good, dict)
    for wrong in _NO_SOURCES:
        faults = await filled.write(name, {**GOOD[name], key: {**good, "b": wrong}})
        assert any(file == name and field.startswith(f"$.{key}.") and "b" in field for file, field in faults), (wrong, faults)
        assert {file for file, _ in faults} == {name}, wrong
        assert await filled.state() == before, wrong


_NO_TEXTS: tuple[JsonValue, ...] = (None, 1, [], {})
_NO_LISTS: tuple[JsonValue, ...] = (None, 1, {})
_NO_MODES: tuple[JsonValue, ...] = (True, {}, {"dry": True}, {"dry_run": "yes"})
_FIELDS: list[tuple[str, dict[str, JsonValue], str, JsonValue]] = [
    *(("registry.json", TOOL, field, wrong) for field in ("name", "version", "category") for wrong in _NO_TEXTS),
    *(("registry.json", TOOL, field, wrong) for field in ("tags", "group_ids", "input_schema", "examples") for wrong in (1, "x")),
    ("registry.json", TOOL, "version", "one"),
    ("registry.json", TOOL, "status", "asleep"),
    ("registry.json", TOOL, "timeout_s", -1),
    ("registry.json", TOOL, "idempotent", "perhaps"),
    *(("registry.json", ACTS, "test_mode", wrong) for wrong in _NO_MODES),
    *(("groups.json", GROUP, field, wrong) for field in ("name", "tool_ids") for wrong in _NO_LISTS),
    ("groups.json", GROUP, "tool_ids", [1]),
    *(("containers.json", CONTAINER, field, wrong) for field in ("tool_id", "image") for wrong in _NO_TEXTS),
    ("containers.json", CONTAINER, "port_mapping", [1]),
    ("containers.json", CONTAINER, "created_at", "yesterday"),
]


async def test_a_field_of_the_wrong_type_is_named_and_the_entry_stays_as_it_was(filled: Filled) -> None:
    before = await filled.state()
    for name, entry, field, wrong in _FIELDS:
        faults = await filled.write(name, {**GOOD[name], ENTRIES[name]: [{**entry, field: wrong}]})
        assert faults, (field, wrong)
        assert all(file == name and found.startswith(f"$.{ENTRIES[name]}[0].{field}") for file, found in faults), (field, wrong, faults)
        write_catalog(filled.data, {name: GOOD[name]})
        assert await filled.state() == before, (field, wrong)


async def test_a_test_mode_that_fits_its_schema_is_kept(filled: Filled) -> None:
    mode: JsonValue = {"dry_run": True}
    assert await filled.write("registry.json", {**GOOD["registry.json"], "tools": [{**ACTS, "test_mode": mode}]}) == set()
    entry = await ToolTable(filled.database).get("a")
    assert (entry.manifest.test_mode if entry else None) == mode


async def test_what_is_no_name_of_a_container_or_an_image_is_named(filled: Filled) -> None:
    before = await filled.state()
    bad: list[JsonValue] = [{"type": "docker", "container_id": "../images/x", "internal_port": 1}, {"type": "docker", "image": "a/../../b"}]
    faults = await filled.write("sources.json", {"sources": {"a": [*bad, SOURCE]}})
    assert faults == {("sources.json", "$.sources.a[0].container_id"), ("sources.json", "$.sources.a[1].image")}
    assert await filled.state() == before


@pytest.mark.parametrize(
    ("name", "entries", "field"),
    [
        ("registry.json", [TOOL, {**TOOL, "name": "other"}], "$.tools[1].tool_id"),
        ("groups.json", [GROUP, {**GROUP, "name": "other"}], "$.groups[1].group_id"),
        ("containers.json", [CONTAINER, {**CONTAINER, "image": "other"}], "$.containers[1].container_id"),
        ("versions.json", {"a": [OLD, {**OLD, "name": "other"}]}, "$.versions.a[1].version"),
    ],
)
async def test_of_two_entries_with_one_id_the_first_counts(filled: Filled, name: str, entries: JsonValue, field: str) -> None:
    before = await filled.state()
    assert await filled.write(name, {**GOOD[name], ENTRIES[name]: entries}) == {(name, field)}
    assert await filled.state() == before


async def test_one_key_twice_in_sources_is_named(filled: Filled) -> None:
    before = await filled.state()
    (filled.data / "sources.json").write_text('{"sources": {"a": [], "a": []}}', "utf-8")
    assert await filled.run() == {("sources.json", "$..a")}
    assert await filled.state() == before


@pytest.mark.parametrize("name", ["registry.json", "versions.json"])
async def test_an_unknown_format_version_is_named_and_read_as_the_known_one(filled: Filled, name: str) -> None:
    before = await filled.state()
    versions: tuple[JsonValue, ...] = ("99.0", 2, None, [], {"major": 1})
    for version in versions:
        assert await filled.write(name, {**GOOD[name], "version": version}) == {(name, "$.version")}, version
        assert await filled.state() == before, version


@pytest.mark.parametrize("odd", ["\0", "a\0b", "\ud800", "\udfff tail"], ids=["NUL", "NUL inside", "half", "other half"])
async def test_characters_that_cannot_be_stored_are_named_wherever_they_stand(filled: Filled, odd: str) -> None:
    before = await filled.state()
    documents: dict[str, dict[str, JsonValue]] = {
        "registry.json": {"version": "2.0", "tools": [TOOL, {**TOOL, "tool_id": odd}, {**TOOL, "tool_id": "t", "description": odd}]},
        "sources.json": {"sources": {"a": [SOURCE, {**SOURCE, odd: 1}], odd: [SOURCE]}},
        "groups.json": {"groups": [GROUP, {**GROUP, "group_id": odd}, {**GROUP, "group_id": "h", "name": odd}]},
        "containers.json": {
            "containers": [CONTAINER, {**CONTAINER, "container_id": odd}, {**CONTAINER, "container_id": "d", "image": odd}]
        },
        "versions.json": {"version": "1.0", "versions": {"a": [OLD, {**OLD, "version": "1.1.0", "x": odd}], odd: [OLD]}},
    }
    write_catalog(filled.data, documents)
    faults = await filled.run()
    for name, where in (("registry.json", "$.tools[1]"), ("registry.json", "$.tools[2]"), ("groups.json", "$.groups[1]")):
        assert any(file == name and field.startswith(where) for file, field in faults), (name, where, faults)
    assert {file for file, _ in faults} == {*documents}
    assert all(field.isprintable() for _, field in faults), faults
    assert await filled.state() == before


async def test_odd_texts_beside_the_entries_are_named(filled: Filled) -> None:
    before = await filled.state()
    for name in GOOD:
        write_catalog(filled.data, {name: {**GOOD[name], "generator": "\0"}})
    assert await filled.run() == {(name, "$") for name in GOOD}
    assert await filled.state() == before


async def test_ids_that_differ_in_case_only_are_two_or_are_refused_by_name(filled: Filled) -> None:
    before = await filled.state()
    faults = await filled.write("registry.json", {"version": "2.0", "tools": [TOOL, {**TOOL, "tool_id": "A"}]})
    assert ("registry.json", "$.tools[1].tool_id") in faults
    assert await filled.state() == before
    faults = await filled.write("groups.json", {"groups": [GROUP, {**GROUP, "group_id": "G"}]})
    assert {group.group_id for group in await GroupTable(filled.database).list_all()} | {
        "G" for file, field in faults if (file, field) == ("groups.json", "$.groups[1].group_id")
    } == {"g", "G"}


@pytest.mark.parametrize(
    "entry",
    [{"container_id": "d", "tool_id": "unknown", "image": "i"}, {"container_id": "d", "image": "i"}, {"tool_id": "a", "image": "i"}],
    ids=["unknown tool", "no tool", "no id"],
)
async def test_a_faulty_container_is_named_and_the_others_are_kept(filled: Filled, entry: JsonValue) -> None:
    faults = await filled.write("containers.json", {"containers": [CONTAINER, entry]})
    assert {file for file, _ in faults} == {"containers.json"}
    assert "c" in {container.container_id for container, _ in await ContainerTable(filled.database).list_stored()}


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"a": [OLD], "unknown": [{**OLD, "tool_id": "unknown"}]}, "$.versions.unknown"),
        ({"a": [OLD, {**OLD, "tool_id": "b"}]}, "$.versions.a[1].tool_id"),
        ({"a": [OLD, {**OLD, "version": "1.1.0", "sources": {}}]}, "$.versions.a[1]"),
        ({"a": [OLD, {**OLD, "version": "1.1.0", "sources": [{"type": "moon"}]}]}, "$.versions.a[1].sources[0]"),
        ({"a": [OLD, {**OLD, "version": "1"}]}, "$.versions.a[1].version"),
        ({"a": [OLD, {**ACTS, "version": "1.1.0", "test_mode": {"dry_run": 1}}]}, "$.versions.a[1].test_mode.dry_run"),
    ],
)
async def test_a_faulty_version_is_named_and_the_others_are_kept(filled: Filled, document: JsonValue, field: str) -> None:
    assert await filled.write("versions.json", {"version": "1.0", "versions": document}) == {("versions.json", field)}
    kept = {one.version for one in await ToolTable(filled.database).versions("a")}
    assert {"1.0.0", "2.0.0"} <= kept


def _fifty_megabytes(kind: str) -> bytes:
    match kind:
        case "one text":
            return b'{"tools": [{"tool_id": "t", "name": "' + b"x" * 50_000_000 + b'"}]}'
        case "below the limit: one text":
            return b'{"tools": [{"tool_id": "t", "name": "' + b"x" * 31_000_000 + b'"}]}'
        case "below the limit: numbers":
            return b'{"tools": [' + b"0," * 15_000_000 + b"0]}"
        case "below the limit: one entry of unknown keys":
            keys = ",".join(f'"tool_idx{number}":0' for number in range(90_000))
            return b'{"tools": [{"tool_id": "t", "name": "T", ' + keys.encode() + b"}]}"
        case "below the limit: entries":
            return b'{"tools": [' + b",".join([b'{"tool_id": 1}'] * 99_999) + b"]}"
        case _:
            return b'{"tools": [{"tool_id": "t", "name": "T", "tags": [' + b"0," * 15_000_000 + b"0]}]}"


@pytest.mark.parametrize(
    "kind",
    [
        "one text",
        "below the limit: one text",
        "below the limit: numbers",
        "below the limit: one entry of unknown keys",
        "below the limit: entries",
        "below the limit: one entry of numbers",
    ],
)
async def test_a_huge_file_is_named_in_a_bounded_time_and_memory(filled: Filled, kind: str) -> None:
    before = await filled.state()
    (filled.data / "registry.json").write_bytes(_fifty_megabytes(kind))
    process, most = psutil.Process(), 0

    async def watch() -> None:
        nonlocal most
        while True:
            most = max(most, process.memory_info().rss)
            await asyncio.sleep(0.05)

    watching, began, at_first = asyncio.create_task(watch()), time.monotonic(), process.memory_info().rss
    faults = await filled.run()
    watching.cancel()
    assert {file for file, _ in faults} >= {"registry.json"}
    assert len(faults) < 1_100
    assert time.monotonic() - began < _BOUND_S
    assert most - at_first < _BOUND_BYTES
    if kind == "one text":
        assert await filled.state() == before
