"""`python -m workers export` beside a running service: its files are imported again, and what it cannot write is named."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Generator
from pathlib import Path

import pytest
from pydantic import JsonValue

from engine.registry.archives import ProjectArchives
from engine.registry.catalog import CatalogImport
from engine.registry.export import CatalogExport
from engine.registry.tool_files import ToolFolders
from engine.registry.tool_files_import import ToolFilesImport
from engine.store.database import Database
from tests.registry.importing import files_of
from tests.system.loaded import start_workers
from tests.system.service_process import ROOT, ServiceProcess, child_environment
from workers.__main__ import main
from workers.commands.export import export_command
from workers.failures import CannotRun
from workers.settings.environment import environment
from workers.settings.kept import StateSettings
from workers.settings.whole import Settings
from workers.state.secrets import SecretSource

_BOUND_S = 60.0
_FILES = {"registry.json", "sources.json", "groups.json"}


@pytest.fixture
def service(tmp_path: Path) -> Generator[ServiceProcess]:
    service = ServiceProcess(tmp_path / "service", ROOT / "data")
    service.start()
    yield service
    service.end()
    service.wait_until_nothing_is_left()


def _importer(database: Database, data: Path, folder: Path) -> CatalogImport:
    """An importer of another service, with tool files."""
    archives = ProjectArchives(files_of(database, folder))
    files = ToolFilesImport(database, archives, "another", ToolFolders((data / "tools",), ROOT / "data" / "scripts"))
    return CatalogImport(database, archives, SecretSource({}, folder / "secrets"), "another", files)


def _program(cwd: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        arguments,
        cwd=cwd,
        env=variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=_BOUND_S,
    )


def _export(state: Path, *arguments: str) -> int:
    """Export as `python -m workers export` does. Raises CannotRun."""
    command = export_command(arguments)
    assert command is not None
    return asyncio.run(_run(command(Settings(state=StateSettings(state_dir=state)))))


async def _run(export: Awaitable[int]) -> int:
    return await export


def _documents(folder: Path) -> dict[str, JsonValue]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {file.relative_to(folder).as_posix(): json.loads(file.read_text("utf-8")) for file in files}


def _empty_state(folder: Path, empty_database: Path) -> Path:
    folder.mkdir()
    (folder / "tool-agent.db").write_bytes(empty_database.read_bytes())
    return folder


async def test_what_a_running_service_has_is_written_over_http_the_same_and_comes_back_equal(
    service: ServiceProcess, database: Database, tmp_path: Path
) -> None:
    own = child_environment(service.state, tmp_path / "unused", {})
    with (tmp_path / "export.log").open("wb") as log:
        exporting = await asyncio.to_thread(start_workers, ["export", "out"], tmp_path, own, log, log)
    assert await asyncio.to_thread(exporting.wait, _BOUND_S) == 0, (tmp_path / "export.log").read_text("utf-8")
    written = _documents(tmp_path / "out")
    tools = {f"tools/{one}@1.0.0.tool.json" for one in ("core.execute-python-script", "examples.word-count")}
    assert written.keys() >= _FILES | tools
    for name in _FILES:
        assert written[name] == json.loads((ROOT / "data" / name).read_text("utf-8")), f"{name} comes back as it was"
    others = {name: value for name, value in environment().items() if not name.startswith("TOOL_AGENT_")}
    toolagent = str(Path(sys.executable).with_name("toolagent"))
    told = await asyncio.to_thread(
        _program, tmp_path, toolagent, "export", "told", "--url", service.api_url, **{**others, "COLUMNS": "200"}
    )
    assert told.returncode == 0, told.stderr
    assert _documents(tmp_path / "told") == written
    await _importer(database, tmp_path / "out", tmp_path).run(tmp_path / "out", ())
    assert await CatalogExport(database).documents() == written


def test_a_folder_that_is_not_empty_is_written_only_by_force_and_other_files_stay(empty_database: Path, tmp_path: Path) -> None:
    state, out = _empty_state(tmp_path / "state", empty_database), tmp_path / "out"
    out.mkdir()
    (out / "registry.json").write_text('"precious"', "utf-8")
    (out / "notes.json").write_text('"mine"', "utf-8")
    with pytest.raises(CannotRun, match="--force"):
        _export(state, str(out))
    assert _documents(out) == {"registry.json": "precious", "notes.json": "mine"}
    assert _export(state, str(out), "--force") == 0
    documents = _documents(out)
    assert documents["registry.json"] == {"version": "2.0", "tools": []}
    assert documents["notes.json"] == "mine"


@pytest.mark.parametrize("what", ["a file", "below a file", "a folder of the system"])
def test_a_folder_that_cannot_be_written_is_named(empty_database: Path, tmp_path: Path, what: str) -> None:
    state = _empty_state(tmp_path / "state", empty_database)
    (tmp_path / "file").write_text("x", "utf-8")
    target = {"a file": f"{tmp_path}/file", "below a file": f"{tmp_path}/file/out", "a folder of the system": "/proc/out"}[what]
    with pytest.raises(CannotRun) as caught:
        _export(state, target)
    assert target in str(caught.value)
    assert (tmp_path / "file").read_text("utf-8") == "x"


def test_a_state_directory_without_a_database_is_named_and_none_is_made(tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match="TOOL_AGENT_STATE_DIR"):
        _export(tmp_path / "nowhere", str(tmp_path / "out"))
    assert not (tmp_path / "nowhere").exists()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("arguments", [("a", "b"), ("--fource",)])
def test_other_arguments_are_answered_with_the_usage(tmp_path: Path, capfd: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    assert main(["export", *arguments]) == 2
    assert "usage" in capfd.readouterr().err
