"""An answer that is nested too deeply is refused, because it is passed on inside other values."""

from dataclasses import replace

import pytest

from engine.runtimes.failures import CallFailed
from engine.runtimes.http.reply import Received, meaning_of
from tests.workflows.steps import plan_of
from toolagent.contracts.calls import ErrorType, ToolCall, ToolError
from toolagent_service.contracts.steps import AdmitRequest, Finished, SettleRequest

DEEP = b"[" * 199 + b"]" * 199
DEEP_ERROR = b'{"error":{"type":"validation_error","message":"no","details":' + b"[" * 198 + b"]" * 198 + b"}}"


@pytest.mark.parametrize(("status", "body"), [(200, DEEP), (500, DEEP), (422, DEEP_ERROR)])
def test_a_deep_answer_gives_a_failure_that_can_be_handed_on(status: int, body: bytes) -> None:
    with pytest.raises(CallFailed) as failed:
        meaning_of(Received(status, body, is_whole=True), 1_000_000, ())
    error = ToolError(type=failed.value.error_type, message=failed.value.message, details=failed.value.details)
    plan = plan_of(AdmitRequest(call=ToolCall(tool_id="deep"), call_id="call-1", workflow_id="w", run_id="r"))
    settling = SettleRequest(plan=plan, outcome=Finished(error=error), workflow_id="w", run_id="r")
    assert SettleRequest.model_validate_json(settling.model_dump_json()) == settling


def test_an_answer_of_too_many_values_is_refused_with_their_number() -> None:
    with pytest.raises(CallFailed) as failed:
        meaning_of(Received(200, b"[" + b"0," * 2_000 + b"0]", is_whole=True), 1_000_000, (), max_values=1_000)
    assert failed.value.error_type is ErrorType.OUTPUT_VALIDATION_ERROR
    assert failed.value.details == {"reason": "too_many_values", "values": 2_002, "limit": 1_000}


CHARSETS = ("utf-16", "utf-16-le", "iso-8859-1", "latin1", "windows-1252", "cp1252", "iso8859-1", "utf-8")


@pytest.mark.parametrize(
    ("codec", "charset"), [*((name, name) for name in CHARSETS), *(("utf-8", name) for name in ("latin1", "ascii", "no"))]
)
def test_a_secret_is_masked_in_a_text_of_any_charset(codec: str, charset: str) -> None:
    received, secrets = Received(200, "so: größer-als".encode(codec), is_whole=True, charset=charset), ("größer-als",)
    assert meaning_of(received, 1_000_000, secrets, gives_text=True) == "so: ***"
    with pytest.raises(CallFailed) as failed:
        meaning_of(replace(received, status=500), 1_000_000, secrets)
    assert failed.value.details == {"status_code": 500, "body": "so: ***"}
