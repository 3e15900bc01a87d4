"""Results that do not fit into a result: fetched by plain HTTP, the same however often they are asked for, bounded."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

from pydantic import JsonValue

from tests.system.service_process import ServiceProcess, run_tool
from toolagent.client.http import ToolAgentHttp
from toolagent.contracts.calls import ErrorType, ToolCall, ToolResult
from toolagent.contracts.references import ResultReference

MIB = 1024 * 1024
SCRIPT = str(Path(sys.executable).with_name("toolagent"))


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
        subprocess.run([SCRIPT, *words], env={"TOOL_AGENT_URL": service.api_url}, check=True, capture_output=True, timeout=90)

    toolagent("run", "versatile", "--params", json.dumps(params), "--key", key, "--output", str(tmp_path / "run.json"))
    toolagent("file", "get", reference.file, "-o", str(tmp_path / "file.json"))
    saved = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in tmp_path.iterdir()}
    assert saved == {"run.json": reference.sha256, "file.json": reference.sha256}


def test_the_same_call_again_gives_the_same_reference(service: ServiceProcess) -> None:
    params = {"mode": "flood", "bytes": 300_000}
    _, first = run_tool(service.http, "versatile", params, key="large once")
    _, again = run_tool(service.http, "versatile", params, key="large once")
    assert reference_in(again) == reference_in(first)
    recorded = service.task(first.call_id).result
    assert recorded is not None
    assert reference_in(recorded) == reference_in(first)


def test_a_fast_call_gives_a_reference_too(service: ServiceProcess) -> None:
    service.http.post("/tools/quick/start").raise_for_status()
    _, result = run_tool(service.http, "quick", {"mode": "flood", "bytes": 300_000})
    assert result.metadata["fast"] is True
    assert service.http.get(reference_in(result).file).content == b'"' + b"x" * 300_000 + b'"'


def test_a_result_just_small_enough_is_given_as_it_is(service: ServiceProcess) -> None:
    _, result = run_tool(service.http, "versatile", {"mode": "flood", "bytes": 256 * 1024 - 2})
    assert (result.is_reference, result.result) == (False, "x" * (256 * 1024 - 2))


def test_a_result_of_more_than_64_mib_is_refused_with_size_and_limit(service: ServiceProcess) -> None:
    status, result = run_tool(service.http, "versatile", {"mode": "flood", "bytes": 65 * MIB})
    assert (status, result.error_type) == (502, ErrorType.OUTPUT_VALIDATION_ERROR)
    assert result.error is not None
    assert isinstance(result.error.details, dict)
    assert (result.error.details["size"], result.error.details["limit"]) == (65 * MIB + 2, 64 * MIB)


def test_a_large_result_that_breaks_its_schema_is_refused_and_not_kept(service: ServiceProcess) -> None:
    status, result = run_tool(service.http, "typed", {"mode": "flood", "bytes": 300_000})
    assert (status, result.error_type) == (502, ErrorType.OUTPUT_VALIDATION_ERROR)
    assert [issue.keyword for issue in result.validation_errors] == ["type"]
