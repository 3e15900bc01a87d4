"""Results too large for a message: fetched over plain HTTP, always the same, and bounded."""

import hashlib
import json
from pathlib import Path

from pydantic import JsonValue
from typer.testing import CliRunner

from tests.system.service_process import ServiceProcess, run_tool
from toolagent.cli.app import app
from toolagent.client.http import ToolAgentHttp
from toolagent.contracts.calls import ToolCall, ToolResult
from toolagent.contracts.references import ResultReference

MIB = 1024 * 1024


def reference_in(result: ToolResult) -> ResultReference:
    assert (result.status, result.is_reference) == ("success", True), result
    return ResultReference.model_validate(result.result)


def test_a_result_of_20_mb_is_fetched_by_plain_http(service: ServiceProcess) -> None:
    status, result = run_tool(service.http, "versatile", {"mode": "flood", "bytes": 20_000_000})
    reference = reference_in(result)
    assert (status, reference.size, reference.preview) == (200, 20_000_002, '"' + "x" * 999)
    whole = service.http.get(reference.file)
    assert (whole.status_code, whole.headers["content-type"]) == (200, "application/json")
    assert hashlib.sha256(whole.content).hexdigest() == reference.sha256
    assert json.loads(whole.content) == "x" * 20_000_000
    end = service.http.get(reference.file, headers={"Range": "bytes=-2"})
    assert (end.status_code, end.content) == (206, b'x"')


def test_a_result_of_20_mb_comes_whole_through_the_client_and_the_command_line(service: ServiceProcess, tmp_path: Path) -> None:
    expected = "x" * 20_000_000
    params: dict[str, JsonValue] = {"mode": "flood", "bytes": 20_000_000}
    key = "large through clients"
    with ToolAgentHttp(service.api_url) as client:
        result = client.run(ToolCall(tool_id="versatile", params=params, idempotency_key=key))
        assert isinstance(result, ToolResult)
        reference = reference_in(result)
        assert client.whole_result(result) == expected

    def toolagent(*words: str) -> None:
        done = CliRunner().invoke(app, [*words], env={"TOOL_AGENT_URL": service.api_url})
        assert done.exit_code == 0, done.output

    toolagent("run", "versatile", "--params", json.dumps(params), "--key", key, "--output", str(tmp_path / "run.json"))
    toolagent("file", "get", reference.file, "-o", str(tmp_path / "file.json"))
    saved = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in tmp_path.iterdir()}
    assert saved == {"run.json": reference.sha256, "file.json": reference.sha256}


def test_a_fast_call_gives_a_reference_too(service: ServiceProcess) -> None:
    service.http.post("/tools/quick/start").raise_for_status()
    _, result = run_tool(service.http, "quick", {"mode": "flood", "bytes": 300_000})
    assert result.metadata["fast"] is True
    assert service.http.get(reference_in(result).file).content == b'"' + b"x" * 300_000 + b'"'
