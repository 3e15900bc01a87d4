"""`python -m workers export`, as a program and beside a running service, and what it wrote read by another service."""

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path

import pytest
from pydantic import JsonValue

from tests.system.service_process import ROOT, ServiceProcess, child_environment, run_tool
from workers.settings import environment

_BOUND_S = 60.0
_FILES = {"registry.json", "sources.json", "groups.json"}


@pytest.fixture
def services(tmp_path: Path) -> Generator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def _started(services: ExitStack, folder: Path, data: Path) -> ServiceProcess:
    service = ServiceProcess(folder, data)
    services.callback(service.wait_until_nothing_is_left)
    services.callback(service.end)
    service.start()
    return service


def _export(state: Path, cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "workers", "export", *arguments],
        cwd=cwd,
        env=child_environment(state, cwd / "unused", {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=_BOUND_S,
    )


def _documents(folder: Path) -> dict[str, JsonValue]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {file.relative_to(folder).as_posix(): json.loads(file.read_text("utf-8")) for file in files}


def _empty_state(folder: Path, empty_database: Path) -> Path:
    folder.mkdir()
    (folder / "tool-agent.db").write_bytes(empty_database.read_bytes())
    return folder


def test_what_a_running_service_has_is_written_over_http_the_same_and_read_by_another(services: ExitStack, tmp_path: Path) -> None:
    service = _started(services, tmp_path / "first", ROOT / "data")
    done = _export(service.state, tmp_path, "out")
    assert done.returncode == 0, done.stderr
    written = _documents(tmp_path / "out")
    tools = {f"tools/{one}@1.0.0.tool.json" for one in ("core.execute-python-script", "examples.word-count")}
    assert written.keys() >= _FILES | tools
    for name in _FILES:
        assert written[name] == json.loads((ROOT / "data" / name).read_text("utf-8")), f"{name} comes back as it was"
    told = subprocess.run(
        [str(Path(sys.executable).with_name("toolagent")), "export", "told", "--url", service.api_url],
        cwd=tmp_path,
        env={name: value for name, value in environment().items() if not name.startswith("TOOL_AGENT_")} | {"COLUMNS": "200"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=_BOUND_S,
    )
    assert told.returncode == 0, told.stderr
    assert _documents(tmp_path / "told") == written
    listed = service.http.get("/tools").json()["tools"]
    assert service.stop() == 0
    second = _started(services, tmp_path / "second", tmp_path / "out")
    assert second.http.get("/tools").json()["tools"] == listed
    assert run_tool(second.http, "calculator", {"expression": "6 * 7"})[0] == 200
    again = _export(second.state, tmp_path, "again")
    assert again.returncode == 0, again.stderr
    assert _documents(tmp_path / "again") == written


def test_a_folder_that_is_not_empty_is_written_only_by_force_and_other_files_stay(empty_database: Path, tmp_path: Path) -> None:
    state = _empty_state(tmp_path / "state", empty_database)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "registry.json").write_text('"precious"', "utf-8")
    (tmp_path / "out" / "notes.json").write_text('"mine"', "utf-8")
    refused = _export(state, tmp_path, "out")
    assert refused.returncode == 1
    assert "--force" in refused.stderr
    assert _documents(tmp_path / "out") == {"registry.json": "precious", "notes.json": "mine"}
    assert _export(state, tmp_path, "out", "--force").returncode == 0
    documents = _documents(tmp_path / "out")
    assert documents["registry.json"] == {"version": "2.0", "tools": []}
    assert documents["notes.json"] == "mine"


@pytest.mark.parametrize("what", ["a file", "below a file", "a folder of the system"])
def test_a_folder_that_cannot_be_written_is_named(empty_database: Path, tmp_path: Path, what: str) -> None:
    state = _empty_state(tmp_path / "state", empty_database)
    (tmp_path / "file").write_text("x", "utf-8")
    target = {"a file": "file", "below a file": "file/out", "a folder of the system": "/proc/out"}[what]
    done = _export(state, tmp_path, target)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert target in done.stderr.replace("\n", "")
    assert (tmp_path / "file").read_text("utf-8") == "x"


def test_a_state_directory_without_a_database_is_named_and_none_is_made(tmp_path: Path) -> None:
    done = _export(tmp_path / "nowhere", tmp_path, "out")
    assert done.returncode == 1
    assert "TOOL_AGENT_STATE_DIR" in done.stderr
    assert not (tmp_path / "nowhere").exists()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("arguments", [("a", "b"), ("--fource",)])
def test_other_arguments_are_answered_with_the_usage(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = _export(tmp_path / "state", tmp_path, *arguments)
    assert done.returncode == 2
    assert "usage" in done.stderr
