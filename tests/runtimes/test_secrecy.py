"""The secret parameters of a call, in what the tool says."""

import threading
from collections.abc import Callable
from typing import cast

import pytest
from mcp import MCPError
from mcp_types import PARSE_ERROR, CallToolResult, TextContent
from mcp_types.methods import parse_server_result
from pydantic import JsonValue, ValidationError

from engine.runtimes import secrecy
from engine.runtimes.auditing import audit
from engine.runtimes.auditing.audit import Audited
from engine.runtimes.cut_secrets import without_parts
from engine.runtimes.environments.execution import Execution
from engine.runtimes.environments.failures import ScriptFailure
from engine.runtimes.failures import CallFailed, no_answer
from engine.runtimes.given_secrets import remember_given
from engine.runtimes.http.reply import Received, meaning_of
from engine.runtimes.mcp.answers import answer_of, failure_of, strange_result
from engine.runtimes.mcp.listing import listing_of
from engine.runtimes.mcp.questions import answered
from engine.runtimes.mcp.session import Session
from engine.runtimes.process.box import Ending
from engine.runtimes.runtime import Silence, ToolRequest
from engine.runtimes.scripts.verdicts import verdict
from engine.runtimes.secrecy import masked, secrets_of
from tests.runtimes.test_local import Told
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sandbox import SandboxLimits

SCHEMA: JsonSchema = {"properties": {"password": {"writeOnly": True}, "name": {"type": "string"}}}


@pytest.mark.parametrize(
    ("password", "said", "shown"),
    [
        ("hunter2", "bad hunter2", "bad ***"),
        ('a "quoted" one', 'bad {"is": "a \\"quoted\\" one"}', 'bad {"is": "***"}'),
        (["first-one", {"deep": 123456}], "bad first-one, 123456", "bad ***, ***"),
        ("long", "bad long-and-longer, long", "bad ***-and-***er, ***"),
        ("bad", "bad", "bad"),
        ("", "bad", "bad"),
        (True, "bad True", "bad True"),
    ],
)
def test_a_failure_repeats_no_secret_parameter_of_four_characters_or_more(password: JsonValue, said: str, shown: str) -> None:
    failure = CallFailed(ErrorType.EXECUTION_ERROR, said, {"stderr": [said]})
    failure.hide(secrets_of(SCHEMA, {"password": password, "name": "bad"}))
    assert (failure.message, str(failure), failure.details) == (shown, shown, {"stderr": [shown]})


def of_http(said: str) -> None:
    meaning_of(Received(500, said.encode(), is_whole=True), 1024 * 1024, ())


def of_mcp(said: str) -> None:
    answer_of(CallToolResult(content=[TextContent(text=said)], is_error=True), 1024 * 1024)


def of_an_mcp_error(said: str) -> None:
    raise failure_of(MCPError(-1, said))


def of_a_script(said: str) -> None:
    _judged(Execution(1, b"", said.encode(), Ending(), 0.1))


def of_a_flood(said: str) -> None:
    _judged(Execution(137, b"", said.encode()[:3_000], Ending(), 0.1, "stderr"))


def _judged(done: Execution) -> None:
    try:
        verdict(done, SandboxLimits(), 1.0)
    except ScriptFailure as failure:
        raise failure.as_call_failure from failure


@pytest.mark.parametrize("fail", [of_http, of_mcp, of_an_mcp_error, of_a_script, of_a_flood])
@pytest.mark.parametrize("is_given", [True, False])
def test_a_secret_that_a_cut_divides_leaves_no_part(fail: Callable[[str], None], *, is_given: bool) -> None:
    """The cuts are 2000, 4096 and 8192 characters from the beginning or from the end."""
    secret = f"{is_given}é".join(map(str, range(100, 500)))
    if is_given:
        remember_given(secret)
    with pytest.raises(CallFailed) as failed:
        fail(f"{secret * 3}\nbad: {secret}" if fail is of_a_script else f"bad: {'-' * 1_000}{secret}")
    failed.value.hide(() if is_given else secrets_of(SCHEMA, {"password": secret}))
    said = f"{failed.value.message} {failed.value.details}"
    assert not any(secret[at : at + 8] in said for at in range(len(secret) - 8))


def test_a_part_has_four_characters_or_more_and_may_stand_beside_half_a_character() -> None:
    secret, half = "sesame", "\N{REPLACEMENT CHARACTER}"
    assert [without_parts(f"is{said}", [secret]) for said in (" ses…", " sesa…", f" sesa{half}…")] == ["is ses…", "is ***…", "is ***…"]
    said = [without_parts(f"[… 9 left out]\n{part} is", [secret]) for part in ("ame", "same", f"{half}same")]
    assert [text.partition("\n")[2] for text in said] == ["ame is", "*** is", "*** is"]


def test_a_text_with_very_many_places_for_a_part_is_masked_instead_of_searched_for_minutes() -> None:
    secret, text = "a" * 2_000, "a" * 1_000
    assert without_parts(f"bad {text}b…", [secret]) == "bad ***…"
    assert without_parts(f"[… 9 earlier bytes left out]\nb{text} bad", [secret]) == "[… 9 earlier bytes left out]\n*** bad"


def test_words_of_the_service_stay() -> None:
    failure = CallFailed(ErrorType.EXECUTION_ERROR, "bad stopped", {"reason": "stopped", "cause": "not_found", "why": "it was stopped"})
    failure.hide(secrets_of(SCHEMA, {"password": ["stopped", "not_found"]}))
    assert (failure.message, failure.details) == ("bad ***", {"reason": "stopped", "cause": "not_found", "why": "it was ***"})


def test_numbers_that_are_a_secret_are_masked_too() -> None:
    failure = CallFailed(ErrorType.EXECUTION_ERROR, "bad", {"status_code": 400, "body": {"pin": 123456, "n": [1234, 12345, True]}})
    failure.hide(secrets_of(SCHEMA, {"password": [123456, "1234"]}))
    assert failure.details == {"status_code": 400, "body": {"pin": "***", "n": ["***", 12345, True]}}


@pytest.mark.parametrize("name", ["reason", "tool_ended", "status_code", "code"])
def test_names_that_others_decide_by_stay(name: str) -> None:
    failure = no_answer("bad", reason="stopped", tool_ended="killed", status_code=503)
    failure.hide(secrets_of(SCHEMA, {"password": name}))
    assert failure.details == {"reason": "stopped", "tool_ended": "killed", "status_code": 503, "outcome": "unknown"}


def test_an_answer_keeps_numbers_and_its_own_ellipses() -> None:
    """A cut of ours is in errors only, and a number must fit the output schema."""
    said: JsonValue = {"text": "It is a test…", "account": 12345678, "key": "test-key", "12345678": 1}
    assert masked(said, ["test-key", "12345678"]) == {"text": "It is a test…", "account": 12345678, "key": "***", "***": 1}


async def test_a_question_that_the_protocol_does_not_have_is_cut_with_a_note() -> None:
    """Beside the note a part of a secret is masked."""

    async def asking(_: object) -> dict[str, JsonValue]:
        return {"resultType": "input_required", "inputRequests": {"a": {"method": f"{'-' * 50}{'sesame' * 20}"}}}

    with pytest.raises(MCPError) as caught:
        await answered(asking, Silence())
    failure = failure_of(caught.value)
    failure.hide(secrets_of(SCHEMA, {"password": "sesame" * 20}))
    assert failure.message.endswith(f" {'-' * 50}***…")


async def test_a_page_that_is_not_json_is_told_without_its_values() -> None:
    class Pages:
        async def list_page(self, cursor: str | None) -> dict[str, JsonValue]:
            if cursor is None:
                return {"tools": [], "nextCursor": "more"}
            raise MCPError(code=PARSE_ERROR, message="Not JSON [type=json_invalid, input_value='ses...ame', input_type=str]")

    listing = await listing_of(cast("Session", Pages()))
    assert [fault.reason for fault in listing.faults] == ["The next page could not be read: Not JSON"]


def test_the_place_of_a_strange_result_is_cut_with_a_note() -> None:
    secret = "sesame" * 20
    result: JsonValue = {"resultType": "input_required", "inputRequests": {f"{'-' * 4000}{secret}": {"method": 1}}}
    with pytest.raises(ValidationError) as caught:
        parse_server_result("tools/call", "2026-07-28", result)
    failure = strange_result(caught.value)
    failure.hide(secrets_of(SCHEMA, {"password": secret}))
    assert failure.message.endswith("-***…")


def test_names_by_which_blame_is_decided_stay() -> None:
    names = {
        *("cause", "secret", "dependencies", "content", "missing"),
        *("exit_code", "last_answer", "ended", "stderr"),
        "other_calls",
        "is_error",
    }
    failure = CallFailed(ErrorType.EXECUTION_ERROR, "bad", dict.fromkeys(names, 1))
    failure.hide(secrets_of(SCHEMA, {"password": [*names]}))
    assert failure.details.keys() == names


def test_a_word_of_the_tool_is_none_of_the_service_and_names_are_masked_too() -> None:
    failure = CallFailed(ErrorType.EXECUTION_ERROR, "bad", {"reason": "hunter2", "for hunter2": 1})
    failure.hide(secrets_of(SCHEMA, {"password": "hunter2"}))
    assert failure.details == {"reason": "***", "for ***": 1}


def test_of_very_many_secrets_the_longest_are_masked() -> None:
    secrets = secrets_of(SCHEMA, {"password": [str(number) for number in range(1_000, 60_000)]})
    assert (len(secrets), min(map(len, secrets))) == (100, 5)
    assert {f"paß{number}" for number in range(60)} <= {*secrets_of(SCHEMA, {"password": [f"paß{number}" for number in range(60)]})}


def test_a_schema_without_secrets_has_none() -> None:
    assert secrets_of({"properties": {"password": {"type": "string"}}}, {"password": "hunter2hunter2"}) == ()


async def test_the_audit_of_a_served_tool_repeats_none() -> None:
    told = Told()
    audited = Audited(told, "here", ToolManifest(tool_id="t", name="T", input_schema=SCHEMA), (), None)
    with pytest.raises(CallFailed):
        async with audited.call(ToolRequest("call-12345678", {"password": "hunter2"}, 1.0)):
            raise CallFailed(ErrorType.EXECUTION_ERROR, "bad hunter2")
    assert [entry.message for entry in told.entries] == ["bad ***"]


async def test_many_parameters_and_details_are_walked_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: dict[str, threading.Thread] = {}

    def noted(place: object, name: str) -> None:
        walk = getattr(place, name)

        def seen(*given: object) -> object:
            threads[name] = threading.current_thread()
            return walk(*given)

        monkeypatch.setattr(place, name, seen)

    said: list[JsonValue] = ["hunter2"] * 5_000
    failure = CallFailed(ErrorType.VALIDATION_ERROR, "bad", {"errors": said})
    noted(secrecy, "secrets_of")
    noted(audit, "masked_params")
    noted(failure, "hide")
    audited = Audited(Told(), "here", ToolManifest(tool_id="t", name="T", input_schema=SCHEMA), (), None)
    many: dict[str, JsonValue] = {"password": "hunter2", **{f"x{number}": number for number in range(5_000)}}
    with pytest.raises(CallFailed):
        async with audited.call(ToolRequest("call-12345678", many, 1.0)):
            raise failure
    assert failure.details == {"errors": ["***"] * 5_000}
    assert (sorted(threads), threading.main_thread() in threads.values()) == (["hide", "masked_params", "secrets_of"], False)
