"""Importing the catalog: usable entries are imported, faulty ones are named."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import JsonValue

from engine.registry.catalog import CatalogImport
from engine.registry.registry import ToolRegistry
from engine.store.database import Database
from engine.store.events import EventTable
from engine.store.faults import FaultTable
from engine.store.groups import GroupTable
from tests.parts import tool_registry
from tests.registry.importing import importer_of
from tests.validation.recursive import TWICE
from toolagent.contracts.backend_runtimes import BackendRuntime
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.records import EventType
from toolagent.contracts.sources import BuiltinSource
from workers.parts import catalog_of
from workers.settings.kept import DatabaseSettings
from workers.settings.tools import CatalogSettings
from workers.settings.whole import Settings
from workers.state.directory import owned_state
from workers.storage import Store

ECHO = ToolEntry(manifest=ToolManifest(tool_id="echo", name="Echo"), sources=(BuiltinSource(handler="echo"),))
A: dict[str, JsonValue] = {"tool_id": "a", "name": "A"}
B: dict[str, JsonValue] = {"tool_id": "b", "name": "B"}
LOCAL: dict[str, JsonValue] = {"type": "local", "host_dir": "tools/local/a"}


@dataclass
class Catalog:
    folder: Path
    registry: ToolRegistry
    groups: GroupTable
    faults: FaultTable
    importer: CatalogImport

    def write(self, name: str, content: JsonValue | str) -> None:
        (self.folder / name).write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")

    async def run(self) -> set[tuple[str, str]]:
        """The faults: file and field."""
        return {(fault.file, fault.field) for fault in await self.importer.run(self.folder, (ECHO,))}


@pytest.fixture
def catalog(database: Database, tmp_path: Path) -> Catalog:
    registry = tool_registry(database)
    folder = tmp_path / "data"
    folder.mkdir()
    made = Catalog(folder, registry, GroupTable(database), FaultTable(database), importer_of(database, tmp_path))
    made.write("registry.json", {"version": "2.0", "tools": [A, B]})
    made.write("sources.json", {"sources": {"a": [LOCAL], "b": [LOCAL]}})
    return made


async def test_tools_sources_groups_and_builtins_are_there_after_the_import(catalog: Catalog) -> None:
    catalog.write("groups.json", {"groups": [{"group_id": "g", "name": "G", "tool_ids": ["a", "echo"]}]})
    assert await catalog.run() == set()
    assert await catalog.registry.list_ids() == ("a", "b", "echo")
    assert [group.group_id for group in await catalog.groups.list_all()] == ["g"]


@pytest.mark.parametrize("gone", ["folder", "registry.json"])
async def test_without_the_folder_or_its_registry_everything_stays_and_that_is_said(catalog: Catalog, gone: str) -> None:
    catalog.write("groups.json", {"groups": [{"group_id": "g", "name": "G"}]})
    await catalog.run()
    for file in [*catalog.folder.iterdir()]:
        file.unlink()
    if gone == "folder":
        catalog.folder.rmdir()
    assert await catalog.run() == {("registry.json", "$")}
    assert await catalog.registry.list_ids() == ("a", "b", "echo")
    assert [group.group_id for group in await catalog.groups.list_all()] == ["g"]


async def test_a_missing_folder_that_nobody_named_is_no_fault_but_one_without_registry_is(catalog: Catalog, tmp_path: Path) -> None:
    await catalog.run()
    assert await catalog.importer.run(tmp_path / "nothing", (ECHO,), expected=False) == ()
    assert await catalog.registry.list_ids() == ("a", "b", "echo")
    (tmp_path / "nothing").mkdir()
    assert len(await catalog.importer.run(tmp_path / "nothing", (ECHO,), expected=False)) == 1


@pytest.mark.parametrize(
    ("url", "own", "faults"),
    [
        (None, CatalogSettings(), 1),
        ("postgresql+asyncpg://elsewhere/x", CatalogSettings(), 0),
        ("postgresql+asyncpg://elsewhere/x", CatalogSettings(data_dir=Path("nothing")), 1),
    ],
    ids=["alone", "joins others", "joins others, with a folder"],
)
async def test_only_a_host_that_joins_others_may_be_without_a_data_folder(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str | None, own: CatalogSettings, faults: int
) -> None:
    monkeypatch.chdir(tmp_path)
    with owned_state(tmp_path / "state", "host-1") as state:
        imports = catalog_of(Store(database, Settings(catalog=own, database=DatabaseSettings(database_url=url)), state), {})
        assert len(await imports()) == faults


async def test_beside_a_registry_a_missing_file_is_an_empty_one(catalog: Catalog) -> None:
    catalog.write("groups.json", {"groups": [{"group_id": "g", "name": "G"}]})
    await catalog.run()
    catalog.write("registry.json", {"tools": []})
    for name in ("sources.json", "groups.json"):
        (catalog.folder / name).unlink()
    assert await catalog.run() == set()
    assert await catalog.registry.list_ids() == ("echo",)
    assert await catalog.groups.list_all() == ()


async def test_a_misspelled_key_is_named_and_a_foreign_one_is_not(catalog: Catalog) -> None:
    odd: JsonValue = {**A, "idempotant": True, "securityContext": {"fileAcess": {}}, "examples": [{}, {"inputs": {}}], "x-owner": "me"}
    catalog.write("registry.json", {"tools": [odd, B], "generator": "by hand"})
    catalog.write("sources.json", {"sources": {"a": [{**LOCAL, "port": 1, "zone": 3}], "b": [LOCAL]}})
    catalog.write("groups.json", {"groups": [{"group_id": "g", "name": "G", "toolids": [], "colour": "red"}]})
    assert await catalog.run() == {
        ("registry.json", "$.tools[0].idempotant"),
        ("registry.json", "$.tools[0].securityContext.fileAcess"),
        ("registry.json", "$.tools[0].examples[1].inputs"),
        ("sources.json", "$.sources.a[0].port"),
        ("groups.json", "$.groups[0].toolids"),
    }
    assert await catalog.registry.list_ids() == ("a", "b", "echo")


async def test_a_schema_that_may_take_for_ever_is_a_fault_and_the_tool_that_was_there_stays(catalog: Catalog) -> None:
    await catalog.run()
    catalog.write("registry.json", {"tools": [{**A, "version": "1.0.1", "input_schema": TWICE}, B]})
    assert await catalog.run() == {("registry.json", "$.tools[0].input_schema.$defs.n.anyOf[0].items")}
    manifest = await catalog.registry.get("a")
    assert manifest is not None
    assert manifest.version == "1.0.0"


async def test_a_schema_is_kept_with_its_references_written_out(catalog: Catalog) -> None:
    schema: JsonValue = {"properties": {"p": {"$ref": "#/$defs/file"}}, "$defs": {"file": {"format": "file-path"}}}
    catalog.write("registry.json", {"tools": [{**A, "input_schema": schema}, B]})
    assert await catalog.run() == set()
    manifest = await catalog.registry.get("a")
    assert manifest is not None
    assert manifest.input_schema == {"properties": {"p": {"format": "file-path"}}}


async def test_what_happens_to_tools_and_what_is_faulty_are_events(catalog: Catalog, database: Database) -> None:
    events = EventTable(database)
    await catalog.run()
    catalog.write("registry.json", {"tools": [{**A, "version": "1.0.1"}, B, {"tool_id": "c"}]})
    await catalog.run()
    await catalog.run()
    await catalog.registry.destroy("a")
    await catalog.registry.destroy("a")
    assert [event.event_type for event in await events.of_tool("a")] == [
        EventType.TOOL_ADDED,
        EventType.TOOL_UPDATED,
        EventType.TOOL_REMOVED,
    ]
    assert [event.details for event in await events.of_tool("")] == [
        {"file": "registry.json", "field": "$.tools[2].name", "reason": "Field required"}
    ]


@pytest.mark.parametrize(
    ("tools", "fault"),
    [
        ([A, B, {"name": "no id"}], "$.tools[2].tool_id"),
        ([A, B, {"tool_id": "Bad Id", "name": "x"}], "$.tools[2].tool_id"),
        ([A, B, {"tool_id": "c", "name": "C", "timeout_s": "soon"}], "$.tools[2].timeout_s"),
        ([A, B, {"tool_id": "c", "name": "C", "input_schema": {"type": "objekt"}}], "$.tools[2].input_schema.type"),
        ([A, B, {"tool_id": "c", "name": "C", "output_schema": {"$ref": "https://elsewhere/x"}}], "$.tools[2].output_schema"),
        ([A, B, {"tool_id": "c", "name": "C", "input_schema": {"not": {"format": "file-path"}}}], "$.tools[2].input_schema.not"),
        ([A, B, A], "$.tools[2].tool_id"),
        ([A, B, "not an object"], "$.tools[2]"),
        ([A, B, {"tool_id": "echo", "name": "mine"}], "echo.tool_id"),
    ],
)
async def test_a_faulty_tool_is_named_and_the_others_are_imported(catalog: Catalog, tools: JsonValue, fault: str) -> None:
    catalog.write("registry.json", {"version": "2.0", "tools": tools})
    assert ("registry.json", fault) in await catalog.run()
    assert await catalog.registry.list_ids() == ("a", "b", "echo")


@pytest.mark.parametrize(
    "text",
    ["{", "[]", "null", "{}", '{"tools": {}}', '{"tools": [], "tools": []}', "\ud800", "[" * 100_000],
    ids=["half", "list", "null", "empty", "no list", "twice", "not utf-8", "deep"],
)
async def test_an_unreadable_file_is_named_and_the_old_state_stays(catalog: Catalog, text: str) -> None:
    await catalog.run()
    (catalog.folder / "registry.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    faults = await catalog.run()
    assert {file for file, _ in faults} == {"registry.json"}
    assert await catalog.registry.list_ids() == ("a", "b", "echo")
    assert len(await catalog.faults.list_all()) == len(faults)


@pytest.mark.parametrize(
    ("sources", "fault"),
    [
        ({"a": [LOCAL], "b": "x"}, "$.sources.b"),
        ({"a": [LOCAL], "b": [{"type": "moon"}]}, "$.sources.b[0]"),
        ({"a": [LOCAL], "b": [LOCAL], "z": [LOCAL]}, "$.sources.z"),
        ({"a": [LOCAL], "b": [{"type": "remote", "remote_url": "x"}]}, "$.sources.b[0].remote.remote_url"),
        (
            {"a": [LOCAL], "b": [{"type": "remote", "remote_url": "http://x", "remote_api_key": "sk-1"}]},
            "$.sources.b[0].remote_api_key",
        ),
    ],
)
async def test_a_faulty_source_is_named(catalog: Catalog, sources: JsonValue, fault: str) -> None:
    catalog.write("sources.json", {"sources": sources})
    assert ("sources.json", fault) in await catalog.run()
    assert "a" in await catalog.registry.list_ids()


async def test_the_source_wins_over_the_backend_runtime_and_that_is_said(catalog: Catalog) -> None:
    catalog.write("registry.json", {"tools": [{**A, "backend_runtime": "docker"}, B]})
    assert await catalog.run() == {("registry.json", "a.backend_runtime")}
    manifest = await catalog.registry.get("a")
    assert manifest is not None
    assert manifest.backend_runtime is BackendRuntime.LOCAL


async def test_a_tool_that_left_the_file_leaves_the_registry(catalog: Catalog) -> None:
    await catalog.run()
    catalog.write("registry.json", {"tools": [A]})
    catalog.write("sources.json", {"sources": {"a": [LOCAL]}})
    assert await catalog.run() == set()
    assert await catalog.registry.list_ids() == ("a", "echo")


async def test_a_destroyed_tool_stays_away_whichever_version_was_active(catalog: Catalog) -> None:
    await catalog.run()
    catalog.write("registry.json", {"tools": [{**A, "version": "2.0.0"}, B]})
    await catalog.run()
    await catalog.registry.activate("a", "1.0.0")
    await catalog.registry.destroy("a")
    catalog.write("registry.json", {"tools": [{**A, "version": "2.0.0"}, B], "x-note": "changed"})
    await catalog.run()
    assert await catalog.registry.get("a") is None


async def test_hundreds_of_tools_that_left_the_file_leave_and_say_so(catalog: Catalog) -> None:
    names = [f"a{number}" for number in range(250)]
    catalog.write("registry.json", {"tools": [A, *({**A, "tool_id": name} for name in names)]})
    catalog.write("sources.json", {"sources": {name: [LOCAL] for name in ("a", *names)}})
    await catalog.run()
    catalog.write("registry.json", {"tools": [A]})
    catalog.write("sources.json", {"sources": {"a": [LOCAL]}})
    await catalog.run()
    assert await catalog.registry.list_ids() == ("a", "echo")


async def test_a_destroyed_tool_stays_away_until_its_entry_has_another_version(catalog: Catalog) -> None:
    await catalog.run()
    await catalog.registry.destroy("a")
    await catalog.run()
    assert await catalog.registry.get("a") is None
    catalog.write("registry.json", {"tools": [{**A, "version": "1.0.1"}, B]})
    await catalog.run()
    assert await catalog.registry.get("a") is not None
