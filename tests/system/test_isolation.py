"""Isolation over HTTP at a running service: containers, packages, changed tool files, answers of the proxy."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from pydantic import JsonValue

from engine.runtimes.docker_engine.engine import Engine
from engine.runtimes.docker_engine.labels import STATE
from engine.runtimes.process.ownership import Owner
from tests.docker.engines import ready_engine
from tests.system.isolated_catalog import ALLOWED, greeting_file, make_isolated_catalog, tool_file
from tests.system.service_process import ServiceProcess, run_tool
from tests.system.waiting import wait_until
from toolagent.contracts.audit import AuditEntry, AuditPage
from toolagent.contracts.calls import ToolResult
from toolagent.contracts.records import CatalogFault
from toolagent.contracts.sandbox import SandboxLevel

# Bun, images and packages come from elsewhere.
pytestmark = pytest.mark.timeout(400)
_FIRST_CALL_S = 300.0
_PYTHON = "core:execute-python-script"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_isolated_catalog(tmp_path_factory.mktemp("isolated"))


@contextmanager
def running(folder: Path, data: Path) -> Generator[ServiceProcess]:
    service = ServiceProcess(folder / "service", data)
    service.start()
    try:
        yield service
    finally:
        service.end()
        service.wait_until_nothing_is_left()


@pytest.fixture(scope="module")
def service(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[ServiceProcess]:
    with running(tmp_path_factory.mktemp("isolation"), data) as service:
        yield service


def first_result(service: ServiceProcess, tool_id: str, params: dict[str, JsonValue]) -> ToolResult:
    """The result of a call that first downloads and builds much: it is asynchronous, because that takes longer than a connection should
    wait.
    """
    result = service.ended_task(service.begin(tool_id, params), _FIRST_CALL_S).result
    assert result is not None
    assert result.status == "success", result.error
    return result


def audited(service: ServiceProcess, tool_id: str) -> tuple[AuditEntry, ...]:
    answer = service.http.get("/audit", params={"tool_id": tool_id}).raise_for_status()
    return AuditPage.model_validate_json(answer.content).entries


def call_line(service: ServiceProcess, result: ToolResult) -> AuditEntry:
    """The only audit line of this call."""
    (line,) = [entry for entry in audited(service, result.tool_id) if entry.call_id == result.call_id]
    return line


def test_a_tool_built_from_a_dockerfile_answers_is_audited_and_leaves_nothing(data: Path, tmp_path: Path) -> None:
    ready_engine()
    with running(tmp_path, data) as service:
        result = first_result(service, "contained", {"x": [1, "二"], "api_key": "s3cret"})
        assert isinstance(result.result, dict)
        assert result.result["echo"] == {"x": [1, "二"], "api_key": "s3cret"}
        line = call_line(service, result)
        assert (line.action, line.outcome, line.command) == ("call", "success", ("python3", "main.py", "--port", "8080"))
        assert line.params == {"x": [1, "二"], "api_key": "***"}
        assert line.sandbox is not None
        assert line.sandbox.level is SandboxLevel.DOCKER
        containers, images = on_the_engine(service)
        assert (len(containers), len(images)) == (1, 1)
        service.http.delete("/tools/contained").raise_for_status()
        assert on_the_engine(service)[0] == []
        assert run_tool(service.http, "contained", {})[0] == httpx.codes.NOT_FOUND
        assert service.stop() == 0
        # Images are swept at each start, and every few minutes.
        service.start()
        wait_until(lambda: on_the_engine(service) == ([], []), "the image of the removed tool is gone")


def on_the_engine(service: ServiceProcess) -> tuple[list[str], list[str]]:
    """Names of the containers and images of its state directory."""
    wanted = {"label": f"{STATE}={Owner.state_of(service.state)}"}
    engine = Engine()
    try:
        containers = engine.in_this_thread(lambda api: api.containers(all=True, filters=wanted))
        images = engine.in_this_thread(lambda api: api.images(filters=wanted))
    finally:
        engine.close()
    return [str(one["Names"]) for one in containers], [str(one["RepoTags"]) for one in images]


@pytest.mark.parametrize("tool_id", ["own:odd-by-node", pytest.param("own:odd-by-bun", marks=pytest.mark.long)])
def test_a_javascript_tool_uses_a_real_package(service: ServiceProcess, tool_id: str) -> None:
    assert first_result(service, tool_id, {"n": 3}).result is True
    status, result = run_tool(service.http, tool_id, {"n": 4})
    assert (status, result.result) == (httpx.codes.OK, False)
    installed = [entry.installs for entry in audited(service, tool_id) if entry.action == "build"]
    assert sum("is-odd" in str(packages) for packages in installed) == 1, installed


def test_a_python_tool_with_metadata_of_its_own_is_installed_once(service: ServiceProcess) -> None:
    params: dict[str, JsonValue] = {"text": "[a]\nb = 1\n"}
    assert [first_result(service, "own:ini-reader", params).result, run_tool(service.http, "own:ini-reader", params)[1].result] == [
        "1",
        "1",
    ]
    lines = audited(service, "own:ini-reader")
    assert [line.action for line in lines] == ["call", "call", "build"]
    assert lines[-1].installs == ("iniconfig==2.0.0",)


def test_an_edited_tool_file_changes_the_next_call_and_a_broken_one_changes_nothing_and_is_named(
    service: ServiceProcess, data: Path
) -> None:
    def greeting() -> JsonValue:
        return first_result(service, "own:greeter", {}).result

    def edit(text: str) -> None:
        # In one step, as good editors do.
        beside = greeting_file(data).with_name("beside")
        beside.write_text(text, "utf-8")
        beside.replace(greeting_file(data))

    def faults() -> list[tuple[str, bool]]:
        found = [CatalogFault.model_validate(one) for one in service.http.get("/tools").json()["catalog_faults"]]
        return [(one.field, "line" in one.reason) for one in found if one.file == greeting_file(data).as_posix()]

    assert greeting() == "hello"
    edit(tool_file("greeter", "python", "main.py", "good day"))
    wait_until(lambda: greeting() == "good day", "the edited file counts")
    edit(tool_file("greeter", "cobol", "main.py", "never"))
    wait_until(lambda: faults() == [("$.handler.language", True)], "the fault is reported")
    assert greeting() == "good day"
    edit(tool_file("greeter", "python", "main.py", "never")[:-20])
    wait_until(lambda: faults() == [("$", True)], "the other fault is reported")
    assert greeting() == "good day"
    edit(tool_file("greeter", "python", "main.py", "welcome"))
    wait_until(lambda: greeting() == "welcome", "the mended file counts")
    assert faults() == []


def test_what_the_proxy_refused_a_tool_is_in_the_audit_of_its_call(service: ServiceProcess) -> None:
    first_result(service, "behind_the_proxy", {})
    status, result = run_tool(service.http, "behind_the_proxy", {"mode": "fetch", "url": "http://elsewhere.invalid/", "times": 2})
    assert status == httpx.codes.OK, result.error
    line = call_line(service, result)
    assert [refusal.partition(": ")[0] for refusal in line.refusals] == ["elsewhere.invalid:80"]
    assert line.sandbox is not None
    assert line.sandbox.enforced.hosts == (ALLOWED,)


def test_the_specified_action_is_answered_with_the_specified_observation(service: ServiceProcess) -> None:
    action = """
      <ACTION>
        <tool_id>core:execute-python-script</tool_id>
        <inputs>
          <input name="scriptPath"><![CDATA[user_scripts/data_analysis/analyzer.py]]></input>
          <input name="inputData"><![CDATA[{"data_url": "http://example.com/data.csv", "threshold": 0.75}]]></input>
          <input name="timeoutMs"><![CDATA[30000]]></input>
        </inputs>
      </ACTION>
    """
    assert observed(service, action) == (
        f"<OBSERVATION><tool_id>{_PYTHON}</tool_id><status>success</status><content>"
        f'Tool {_PYTHON} executed successfully. Output: {{"processed_items": 10, "report_url": "/reports/analyzer_123.html"}}'
        "</content></OBSERVATION>"
    )
    wrong = action.replace("30000", "soon")
    assert observed(service, wrong) == (
        f"<OBSERVATION><tool_id>{_PYTHON}</tool_id><status>error</status><content>"
        f"Tool {_PYTHON} failed. Error type: ParameterValidationError. Message: Input parameter 'timeoutMs' must be an integer."
        "</content></OBSERVATION>"
    )


def test_a_script_that_fails_is_observed_with_what_it_wrote(service: ServiceProcess, data: Path) -> None:
    (data / "scripts/divides.py").write_text("print(1 / 0)\n", "utf-8")
    said = observed(service, f"<ACTION><tool_id>{_PYTHON}</tool_id><inputs><input name='scriptPath'>divides.py</input></inputs></ACTION>")
    assert said.startswith(
        f"<OBSERVATION><tool_id>{_PYTHON}</tool_id><status>error</status><content>Tool {_PYTHON} failed. Error type: ScriptError. Message: "
    )
    assert " Details: Traceback (most recent call last)" in said
    assert "ZeroDivisionError: division by zero" in said


def observed(service: ServiceProcess, action: str) -> str:
    answer = service.http.post("/agent/action", content=action, headers={"Content-Type": "application/xml"})
    assert (answer.status_code, answer.headers["content-type"]) == (httpx.codes.OK, "application/xml")
    return answer.text
