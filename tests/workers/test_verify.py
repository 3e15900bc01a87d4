"""`python -m workers verify` names damage with the remedy, and counts what is intact."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic import JsonValue

from engine.store.content.folder import FolderContent
from engine.store.database import Database
from engine.store.tools import ToolTable
from tests.registry.importing import write_catalog
from toolagent.contracts.records import StoredFile
from toolagent.contracts.sources import LocalSource
from workers.commands.verify import verify
from workers.failures import CannotRun
from workers.parts import catalog_of
from workers.settings.kept import StateSettings
from workers.settings.tools import CatalogSettings
from workers.settings.whole import Settings
from workers.state.directory import StateDirectory
from workers.storage import Store


async def pieces(content: bytes) -> AsyncIterator[bytes]:
    yield content


@pytest.fixture
def settings(tmp_path: Path, empty_database: Path) -> Settings:
    """The settings of a service with one file and one tool."""
    state = tmp_path / "state"
    state.mkdir()
    shutil.copyfile(empty_database, state / "tool-agent.db")
    (tmp_path / "data" / "good").mkdir(parents=True)
    (tmp_path / "data" / "good" / "main.py").write_text("print(1)", "utf-8")
    tools: dict[str, JsonValue] = {"tools": [{"tool_id": "good", "name": "Good"}]}
    write_catalog(
        tmp_path / "data", {"registry.json": tools, "sources.json": {"sources": {"good": [{"type": "local", "host_dir": "good"}]}}}
    )
    return Settings(state=StateSettings(state_dir=state), catalog=CatalogSettings(data_dir=tmp_path / "data"))


async def filled(settings: Settings) -> tuple[StoredFile, str]:
    """A file, and the archive of the tool."""
    state = StateDirectory(settings.state.state_dir)
    database = Database(state.database_url)
    store = Store(database, settings, state)
    await catalog_of(store, {})()
    file = await store.files.put(pieces(b"content"), "a.txt")
    (source,) = [entry.sources[0] for entry in await ToolTable(database).list_active_versions() if entry.manifest.tool_id == "good"]
    assert isinstance(source, LocalSource)
    assert source.content is not None
    store.audit.close()
    await database.close()
    return file, source.content


def kept_in(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def test_what_is_whole_is_counted(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    await filled(settings)
    assert await verify(settings) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [row for row in rows if row] == [
        ["part", "checked", "damaged"],
        ["database", "1", "0"],
        ["references", "2", "0"],
        ["content", "2", "0"],
        ["archives", "1", "0"],
    ]


async def test_what_is_damaged_is_named_with_its_remedy_and_left_as_it_is(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    file, archive = await filled(settings)
    for kept in (settings.state.state_dir / "content").glob("??/*"):
        kept.write_bytes(b"damaged")
    (settings.state.state_dir / "temporal").mkdir()
    (settings.state.state_dir / "temporal" / "temporal.db").write_bytes(b"no database at all" * 1000)
    before = kept_in(settings.state.state_dir / "content")
    assert await verify(settings) == 1
    out = capsys.readouterr().out
    assert f"content: {file.file_id} (a.txt): its bytes are damaged. To do: upload the right bytes again with POST /files." in out
    assert f"content: {archive} (good.tar): its bytes are damaged. To do: start the service with the data folder" in out
    assert "temporal.db: malformed" in out
    assert kept_in(settings.state.state_dir / "content") == before


async def test_a_file_without_its_bytes_and_a_damaged_unpacked_project_are_named(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    file, archive = await filled(settings)
    await FolderContent(settings.state.state_dir / "content").delete(file.sha256)
    project = settings.state.state_dir / "projects" / archive
    project.mkdir(parents=True)
    (project / "main.py").write_text("print(2)", "utf-8")
    assert await verify(settings) == 1
    out = capsys.readouterr().out
    assert f"content: {file.file_id} (a.txt): its bytes are missing" in out
    assert f"archives: {project / 'main.py'}: it is not what the archive has. To do: remove {project}" in out


async def test_a_damaged_database_is_named_and_so_is_what_could_not_be_looked_at(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    database = settings.state.state_dir / "tool-agent.db"
    database.write_bytes(b"\xff" * database.stat().st_size)
    assert await verify(settings) == 1
    out = capsys.readouterr().out
    assert f"database: {database}: malformed" in out
    assert "content: content: it could not be looked at" in out


async def test_without_a_database_there_is_nothing_to_look_at(tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match="TOOL_AGENT_STATE_DIR"):
        await verify(Settings(state=StateSettings(state_dir=tmp_path)))
    assert kept_in(tmp_path) == {}
