"""Two versions of a tool with different code run side by side, and its catalog is edited meanwhile."""

import json
import shutil
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from pydantic import JsonValue

from tests.system.effects import count_of, grant_effects, own_effects, wait_for_effect
from tests.system.service_process import ROOT, ServiceProcess
from tests.system.waiting import wait_until
from toolagent.contracts.calls import ErrorType, ToolResult
from toolagent.contracts.versions import ToolVersions

_PLAIN = '"pid": os.getpid()'


class Edited:
    """A data folder with one tool, `speaker`, whose answers name their code, and a service on it."""

    def __init__(self, folder: Path, environments: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder / "data", stack
        (folder / "environments").symlink_to(environments)
        self._write = grant_effects(folder)
        self.effects = own_effects(self._folder)
        self.project = self._folder / "projects/speaker"
        shutil.copytree(ROOT / "tests/tool_projects/diligent", self.project, ignore=shutil.ignore_patterns("__pycache__", ".venv"))
        self.write_code("one")
        sources: JsonValue = {"sources": {"speaker": [{"type": "local", "host_dir": "projects/speaker", "endpoint_path": "/run"}]}}
        (self._folder / "sources.json").write_text(json.dumps(sources), "utf-8")
        self.write_version("1.0.0")
        self._service_folder = folder / "service"

    def service(self, **settings: str) -> ServiceProcess:
        service = ServiceProcess(self._service_folder, self._folder, **settings)
        self._stack.callback(service.wait_until_nothing_is_left)
        self._stack.callback(service.end)
        service.start()
        return service

    def write_code(self, name: str) -> None:
        plain = (ROOT / "tests/tool_projects/diligent/main.py").read_text("utf-8")
        assert _PLAIN in plain
        (self.project / "main.py").write_text(plain.replace(_PLAIN, f'{_PLAIN}, "code": {name!r}'), "utf-8")

    def write_version(self, version: str) -> None:
        told: JsonValue = {"tool_id": "speaker", "name": "Speaker", "version": version, "side_effect_scope": "local_state", "timeout_s": 90}
        tool: JsonValue = {**told, "securityContext": self._write}
        (self._folder / "registry.json").write_text(json.dumps({"version": "2.0", "tools": [tool]}), "utf-8")

    def call(self, service: ServiceProcess, version: str | None = None) -> tuple[int, ToolResult]:
        call: dict[str, JsonValue] = {"tool_id": "speaker", "params": {"effects": str(self.effects), "line": "call"}, "version": version}
        answer = service.http.post("/run_tool", json=call)
        return answer.status_code, ToolResult.model_validate_json(answer.content)

    def code(self, service: ServiceProcess, version: str | None = None) -> str:
        """The code that answers."""
        status, result = self.call(service, version)
        assert status == httpx.codes.OK, result
        assert isinstance(result.result, dict)
        return str(result.result["code"])


@pytest.fixture
def edited(tmp_path: Path, environments: Path) -> Generator[Edited]:
    with ExitStack() as stack:
        yield Edited(tmp_path, environments, stack)


def _versions(service: ServiceProcess) -> ToolVersions:
    return ToolVersions.model_validate_json(service.http.get("/tools/speaker/versions").raise_for_status().content)


def _decide(service: ServiceProcess, version: str, what: str) -> httpx.Response:
    return service.http.post(f"/tools/speaker/versions/{version}/{what}")


def _add_second_version(edited: Edited, service: ServiceProcess) -> None:
    """Edit as operators do: first the version, so that the first one keeps its code; then the code."""
    edited.write_version("2.0.0")
    wait_until(lambda: _versions(service).active_version == "2.0.0", "the watcher has imported 2.0.0")
    edited.write_code("two")
    wait_until(lambda: edited.code(service) == "two", "the watcher has imported the code of 2.0.0")


def test_two_versions_run_their_own_code_and_what_was_decided_about_them_survives_a_restart(edited: Edited) -> None:
    service, go_on = edited.service(), edited.effects.with_name("go on")
    params: dict[str, JsonValue] = {"effects": str(edited.effects), "line": "early", "until": str(go_on)}
    early = service.begin("speaker", params)
    wait_for_effect(edited.effects, "early")
    _add_second_version(edited, service)
    assert [edited.code(service, version) for version in (None, "1.0.0", "2.0.0", "^1.0", "<2", ">=1", "~2.0")] == [
        "two",
        "one",
        "two",
        "one",
        "one",
        "two",
        "two",
    ]
    assert service.task(early).result is None, "it goes on although there is another version"
    go_on.touch()
    result = service.ended_task(early).result
    assert result is not None
    assert isinstance(result.result, dict)
    assert (result.status, result.result["code"], count_of(edited.effects, "early")) == ("success", "one", 1)
    _decide_about_versions(edited, service)


def _decide_about_versions(edited: Edited, service: ServiceProcess) -> None:
    """Change the status of versions; errors of calls name the version."""
    assert _decide(service, "2.0.0", "deactivate").is_success
    for wanted in (None, "2.0.0"):
        status, result = edited.call(service, wanted)
        assert (status, result.error_type) == (httpx.codes.NOT_FOUND, ErrorType.TOOL_NOT_FOUND)
        assert result.error is not None
        assert "2.0.0" in result.error.message
    status, result = edited.call(service, "^2.0")
    assert result.error is not None
    assert (status, result.error_type) == (httpx.codes.NOT_FOUND, ErrorType.TOOL_NOT_FOUND)
    assert "2.0.0" in result.error.message
    status, result = edited.call(service, "3.0.0")
    assert (status, result.error_type) == (httpx.codes.NOT_FOUND, ErrorType.TOOL_NOT_FOUND)
    assert result.error is not None
    assert "3.0.0" in result.error.message
    assert edited.code(service, ">=1") == "one"
    assert _decide(service, "3.0.0", "activate").status_code == httpx.codes.NOT_FOUND
    assert _decide(service, "1.0.0", "activate").is_success
    assert edited.code(service) == "one"
    before = _versions(service)
    assert service.stop() == 0
    edited.write_code("three")
    service.start()
    assert _versions(service) == before
    assert (edited.code(service), edited.call(service, "2.0.0")[0]) == ("one", httpx.codes.NOT_FOUND)
    assert _decide(service, "2.0.0", "activate").is_success
    assert edited.code(service) == "three", "what is in the folder is the newest version's, also when it was edited between two starts"


@pytest.mark.long
def test_without_the_watcher_an_edit_waits_for_the_next_start(edited: Edited) -> None:
    service = edited.service(CATALOG_WATCH="false")
    assert edited.code(service) == "one"
    edited.write_version("2.0.0")
    edited.write_code("two")
    assert (edited.code(service), _versions(service).active_version) == ("one", "1.0.0")
    assert "catalog_imported" not in service.output
    assert service.stop() == 0
    service.start()
    assert (edited.code(service), _versions(service).active_version) == ("two", "2.0.0")
    assert edited.code(service, "1.0.0") == "one"


def test_an_edited_project_of_the_same_version_answers_later_calls(edited: Edited) -> None:
    service, go_on = edited.service(), edited.effects.with_name("go on")
    early = service.begin("speaker", {"effects": str(edited.effects), "line": "early", "until": str(go_on)})
    wait_for_effect(edited.effects, "early")
    edited.write_code("two")
    wait_until(lambda: edited.code(service) == "two", "a running instance was replaced")
    go_on.touch()
    result = service.ended_task(early).result
    assert result is not None
    assert isinstance(result.result, dict)
    assert result.result["code"] == "one", "who was being served is served to the end"
    assert [one.version for one in _versions(service).versions] == ["1.0.0"]
