"""Tools in their own files are added, changed and removed with the files."""

import io
import json
import tarfile
import time
from pathlib import Path

import pytest
from pydantic import JsonValue

from engine.store.database import Database
from tests.registry.importing import files_of
from tests.registry.tool_files import SCRIPT, ToolFiles, tool_file
from toolagent.contracts.backend_runtimes import BackendRuntime
from toolagent.contracts.manifest import ToolStatus
from toolagent.contracts.sources import BuiltinSource, ScriptLanguage, ScriptSource
from toolagent.contracts.tool_files import ExternalScript
from toolagent.validation.tool_folders import NoScriptError, find_script


@pytest.fixture
def files(database: Database, tmp_path: Path) -> ToolFiles:
    return ToolFiles(database, tmp_path)


async def test_a_file_becomes_a_tool_with_what_it_says(files: ToolFiles) -> None:
    parameters: JsonValue = {"type": "object", "properties": {"p": {"type": "string", "default": "x"}}}
    files.write("deep/er/a", tool_file(parameters=parameters, tags=["t"], sideEffectScope="none", timeoutSeconds=7, category="text"))
    assert await files.run() == ()
    entry = await files.registry.entry("custom:a")
    assert entry is not None
    said = entry.manifest
    assert (said.name, said.version, said.tags, said.input_schema, said.timeout_s) == ("A", "1.0.0", ("t",), parameters, 7)
    assert (said.category, said.side_effect_scope, said.backend_runtime) == ("text", "none", BackendRuntime.LOCAL)
    assert isinstance(entry.sources[0], BuiltinSource)


async def test_a_script_is_kept_with_its_folder_and_a_change_of_it_is_a_change_of_the_tool(files: ToolFiles) -> None:
    files.write("a/a", tool_file(handler=SCRIPT))
    files.write_script("a/main.py")
    assert await files.run() == ()
    first = await files.registry.entry("custom:a")
    files.write_script("a/helper.py", "x = 1")
    assert await files.run() == ()
    second = await files.registry.entry("custom:a")
    assert first is not None
    assert second is not None
    source = second.sources[0]
    assert isinstance(source, ScriptSource)
    assert (source.script_path, source.language) == ("main.py", ScriptLanguage.PYTHON)
    assert source.content is not None
    assert first.sources != second.sources


async def test_a_script_right_among_other_tools_is_given_itself_alone_and_what_its_file_names(files: ToolFiles, tmp_path: Path) -> None:
    files.write("a", tool_file(handler=SCRIPT))
    files.write("b", tool_file("custom:b", handler={**SCRIPT, "scriptPath": "b.py", "files": ["lib/**", "b.json"]}))
    for name in ("main.py", "b.py", "b.json", "c.json", "lib/x.py", "lib/deep/y.py", "lib/.venv/z.py"):
        files.write_script(name)
    assert await files.run() == ()
    assert await _kept(files, "custom:a", tmp_path) == ["main.py"]
    assert await _kept(files, "custom:b", tmp_path) == ["b.json", "b.py", "lib/deep/y.py", "lib/x.py"]
    before = await files.registry.entry("custom:b")
    files.write_script("c.json", "{}")
    assert await files.run() == ()
    assert await files.registry.entry("custom:b") == before


async def test_a_pattern_that_would_walk_for_ever_is_answered_at_once(files: ToolFiles) -> None:
    place = files.folder / "a"
    for _ in range(40):
        place = place / "d"
    place.mkdir(parents=True)
    files.write_script("a/main.py")
    files.write("a/a", tool_file(handler={**SCRIPT, "files": ["/".join(["**"] * 7 + ["nope"])]}))
    begun = time.monotonic()
    assert await files.faults() == {("a/a.tool.json", "$.handler.files[0]")}
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize("pattern", ["../../x/evil.py", "sub/../../evil.py"])
def test_a_pattern_that_leads_out_and_back_is_none(tmp_path: Path, pattern: str) -> None:
    """Also without the rules of the file: the name would lead out of the folder that the file is copied to."""
    (tmp_path / "x" / "sub").mkdir(parents=True)
    for name in ("main.py", "evil.py"):
        (tmp_path / "x" / name).write_text("print(1)", "utf-8")
    handler = ExternalScript.model_validate({**SCRIPT, "files": [pattern]})
    with pytest.raises(NoScriptError, match="is no pattern"):
        find_script(handler, tmp_path / "x", None)


async def _kept(files: ToolFiles, tool_id: str, root: Path) -> list[str]:
    """The files that a script gets, by name."""
    entry = await files.registry.entry(tool_id)
    assert entry is not None
    (source,) = entry.sources
    assert isinstance(source, ScriptSource)
    assert source.content is not None
    store = files_of(files.database, root)
    stored = await store.get(source.content)
    assert stored is not None
    content = b"".join([chunk async for chunk in store.read(stored)])
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        return sorted(archive.getnames())


async def test_a_script_that_is_not_beside_its_file_is_sought_below_the_script_root(files: ToolFiles) -> None:
    (files.scripts / "reports").mkdir()
    (files.scripts / "reports" / "main.py").write_text("print(1)", "utf-8")
    files.write("a", tool_file(handler={**dict(SCRIPT), "scriptPath": "reports/main.py"}))  # pyright: ignore[reportArgumentType, reportCallIssue] - it is an object
    assert await files.run() == ()


async def test_editing_a_file_replaces_its_version(files: ToolFiles) -> None:
    files.write("a", tool_file())
    await files.run()
    files.write("a", tool_file(description="Does more."))
    await files.run()
    assert await files.described() == "Does more."
    files.write("a", tool_file(version="1.1.0"))
    await files.run()
    assert await files.versions() == ("1.1.0", {"1.1.0"})


async def test_several_versions_live_side_by_side_and_the_newest_release_is_active(files: ToolFiles) -> None:
    for version in ("1.9.0", "1.10.0", "2.0.0-rc.1"):
        files.write(f"a-{version}", tool_file(version=version, description=version))
    assert await files.run() == ()
    assert await files.versions() == ("1.10.0", {"1.9.0", "1.10.0", "2.0.0-rc.1"})
    assert await files.described(version="1.9.0") == "1.9.0"


async def test_a_removed_file_removes_its_version_and_the_last_one_the_tool(files: ToolFiles) -> None:
    one, two = files.write("one", tool_file()), files.write("two", tool_file(version="2.0.0"))
    await files.run()
    two.unlink()
    assert await files.run() == ()
    assert await files.versions() == ("1.0.0", {"1.0.0"})
    one.unlink()
    assert await files.run() == ()
    assert await files.versions() == (None, set())


async def test_what_an_operator_activated_stays_until_its_file_goes(files: ToolFiles) -> None:
    one = files.write("one", tool_file())
    files.write("two", tool_file(version="2.0.0"))
    await files.run()
    await files.registry.activate("custom:a", "1.0.0")
    files.write("two", tool_file(version="2.0.0", description="Edited."))
    await files.run()
    assert await files.versions() == ("1.0.0", {"1.0.0", "2.0.0"})
    one.unlink()
    await files.run()
    assert await files.versions() == ("2.0.0", {"2.0.0"})


@pytest.mark.parametrize("broken", ["", "{", '{"toolId": "custom:a"}', json.dumps(tool_file(version="one"))])
async def test_a_broken_edit_keeps_the_old_and_is_reported_and_the_others_are_loaded(files: ToolFiles, broken: str) -> None:
    files.write("a", tool_file())
    files.write("b", tool_file("custom:b"))
    await files.run()
    files.write("a", broken)
    files.write("b", tool_file("custom:b", description="Edited."))
    faults = await files.faults()
    assert {file for file, _ in faults} == {"a.tool.json"}
    assert await files.versions() == ("1.0.0", {"1.0.0"})
    assert await files.described("custom:b") == "Edited."


async def test_a_broken_newest_version_stays_the_active_one(files: ToolFiles) -> None:
    files.write("one", tool_file())
    files.write("two", tool_file(version="2.0.0"))
    await files.run()
    files.write("two", "{")
    files.write("one", tool_file(description="Edited."))
    await files.run()
    assert await files.versions() == ("2.0.0", {"1.0.0", "2.0.0"})
    assert await files.described(version="1.0.0") == "Edited."


async def test_the_same_id_and_version_from_another_file_is_refused_whatever_it_is_called(files: ToolFiles) -> None:
    files.write("b", tool_file())
    await files.run()
    files.write("a", tool_file(description="Another."))
    assert await files.faults() == {("a.tool.json", "$.version")}
    assert await files.described() == "Does a."


async def test_a_file_may_be_renamed(files: ToolFiles) -> None:
    files.write("b", tool_file()).rename(files.folder / "z.tool.json")
    assert await files.run() == ()
    (files.folder / "z.tool.json").rename(files.folder / "a.tool.json")
    assert await files.run() == ()
    assert await files.versions() == ("1.0.0", {"1.0.0"})


async def test_ids_of_other_tools_are_refused(files: ToolFiles) -> None:
    files.write_registry({"tool_id": "of_registry", "name": "R"})
    for name in ("echo", "of_registry"):
        files.write(name, tool_file(name))
    assert {("echo.tool.json", "$.toolId"), ("of_registry.tool.json", "$.toolId")} <= await files.faults()


async def test_a_tool_moves_from_one_kind_of_file_to_the_other_and_back(files: ToolFiles) -> None:
    files.write_registry({"tool_id": "custom:a", "name": "R", "description": "In the registry."})
    await files.run()
    files.write_registry()
    path = files.write("a", tool_file())
    assert await files.run() == ()
    assert await files.described() == "Does a."
    path.unlink()
    files.write_registry({"tool_id": "custom:a", "name": "R", "description": "In the registry."})
    await files.run()
    assert await files.described() == "In the registry."


async def test_a_folder_that_is_gone_is_reported_and_its_tools_stay(files: ToolFiles) -> None:
    files.write("a", tool_file())
    await files.run()
    files.folder.rename(files.folder.with_name("elsewhere"))
    assert {fault.field for fault in await files.run()} == {"$"}
    assert await files.versions() == ("1.0.0", {"1.0.0"})


async def test_what_another_host_still_has_stays(database: Database, tmp_path: Path) -> None:
    one, other = ToolFiles(database, tmp_path), ToolFiles(database, tmp_path, "host-2")
    path = one.write("a", tool_file())
    other.write("a", tool_file()).parent.mkdir(exist_ok=True)
    await one.run()
    await other.run()
    path.unlink()
    await one.run()
    assert await one.versions() == ("1.0.0", {"1.0.0"})
    other.write("a", tool_file(version="2.0.0"))
    await other.run()
    assert await one.versions() == ("2.0.0", {"2.0.0"})


async def test_a_deactivated_version_stays_so_and_a_destroyed_tool_away(files: ToolFiles) -> None:
    files.write("a", tool_file())
    await files.run()
    await files.registry.deactivate("custom:a", "1.0.0")
    await files.run()
    manifest = await files.registry.get("custom:a")
    assert manifest is not None
    assert manifest.status is ToolStatus.INACTIVE
    await files.registry.destroy("custom:a")
    await files.run()
    assert await files.versions() == (None, set())


async def test_the_tools_of_the_engine_are_there_whatever_the_data_folder_has(database: Database, tmp_path: Path) -> None:
    shipped = tmp_path / "shipped"
    shipped.mkdir()
    (shipped / "run.tool.json").write_text(json.dumps(tool_file("core:run")), "utf-8")
    files = ToolFiles(database, tmp_path, shipped=shipped)
    files.write("a", tool_file())
    assert await files.run() == ()
    assert set(await files.registry.list_ids()) == {"core:run", "custom:a", "echo"}
    # One's own file of the same id counts, and so does one's own tool of another kind.
    mine = files.write("mine", tool_file("core:run", status="inactive"))
    assert await files.run() == ()
    statuses = {entry.manifest.tool_id: entry.manifest.status for entry in await files.registry.list_entries()}
    assert statuses == {"core:run": "inactive", "custom:a": "active", "echo": "active"}
    mine.unlink()
    files.write_registry({"tool_id": "core:run", "name": "Mine"})
    await files.run()
    manifest = await files.registry.get("core:run")
    assert manifest is not None
    assert manifest.name == "Mine"
