"""Tools that fail in every way: each error names its cause, and the service goes on."""

import pytest
from pydantic import JsonValue

from tests.system.service_process import ServiceProcess, run_tool
from toolagent.contracts.calls import ErrorType


@pytest.mark.parametrize(
    ("tool_id", "mode", "status", "error_type", "outcome"),
    [
        ("versatile", "fail", 502, ErrorType.EXECUTION_ERROR, None),
        ("versatile", "garble", 502, ErrorType.OUTPUT_VALIDATION_ERROR, "executed"),
        ("typed", "ok", 502, ErrorType.OUTPUT_VALIDATION_ERROR, "executed"),
        ("hasty", "hang", 504, ErrorType.TIMEOUT, "unknown"),
        ("hasty", "exit", 502, ErrorType.EXECUTION_ERROR, "unknown"),
    ],
)
@pytest.mark.promise("failures-are-data")
def test_a_bad_tool_is_named_for_what_it_did(
    service: ServiceProcess, tool_id: str, mode: str, status: int, error_type: ErrorType, outcome: str | None
) -> None:
    params: dict[str, JsonValue] = {"mode": mode}
    answered, result = run_tool(service.http, tool_id, params)
    assert (answered, result.error_type, result.status) == (status, error_type, "error")
    assert result.error is not None
    details = result.error.details
    assert (details.get("outcome") if isinstance(details, dict) else None) == outcome
    assert service.is_healthy()


def _sandboxes(service: ServiceProcess, tool_id: str) -> list[str]:
    """Processes of sandboxes whose command line names the tool's folder."""
    return [command for command in service.leftovers().values() if f"tools/{tool_id}/home" in command]


def test_a_tool_that_runs_is_seen_in_its_sandbox(service: ServiceProcess) -> None:
    service.http.post("/tools/versatile/start").raise_for_status()
    assert _sandboxes(service, "versatile")


def test_a_tool_that_cannot_be_started_says_so_and_leaves_no_process(service: ServiceProcess) -> None:
    status, result = run_tool(service.http, "broken", {})
    assert (status, result.error_type, result.status) == (503, ErrorType.UNAVAILABLE, "error")
    assert result.error is not None
    assert isinstance(result.error.details, dict)
    assert result.error.details["sent"] is False
    assert _sandboxes(service, "broken") == []
    route = service.http.get("/tools/broken").json()["route"]
    assert (route["state"], route["pid"]) == ("error", None)
    assert route["last_error"]
    assert service.is_healthy()
