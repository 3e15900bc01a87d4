"""Recorded parameters and commands hold no secrets and no long texts."""

import pytest
from pydantic import JsonValue

from toolagent.contracts.calls import Caller
from toolagent.core.calls.masking import LONGEST, masked_caller, masked_command, masked_params
from toolagent.core.schemas import MASK

SCHEMA: dict[str, JsonValue] = {"properties": {"pin": {"type": "integer", "writeOnly": True}, "word": {"format": "password"}}}


def test_what_the_schema_calls_a_secret_is_masked() -> None:
    assert masked_params(SCHEMA, {"pin": 1234, "word": "abc", "city": "Zürich"}) == {"pin": "***", "word": "***", "city": "Zürich"}


@pytest.mark.parametrize(
    "name", ["api_key", "apiKey", "API-KEY", "APIKey", "token", "access_token", "password", "dbPassword", "Authorization", "client_secret"]
)
def test_what_sounds_like_a_secret_is_masked_however_deep(name: str) -> None:
    assert masked_params({}, {name: "abc", "deep": [{name: ["abc"]}]}) == {name: "***", "deep": [{name: "***"}]}


@pytest.mark.parametrize(("name", "value"), [("max_tokens", "100"), ("token", 7), ("keyboard", "x"), ("key", "x"), ("secretary", "x")])
def test_what_only_looks_alike_is_kept(name: str, value: JsonValue) -> None:
    assert masked_params({}, {name: value}) == {name: value}


def test_long_values_are_cut() -> None:
    params: dict[str, JsonValue] = {"text": "x" * 10_000, "list": [*range(1000)], "object": {str(number): 1 for number in range(1000)}}
    shown = masked_params({}, params)
    assert shown["text"] == "x" * LONGEST + "… (10000 characters)"
    assert shown["list"] == [*range(50), "… 950 more"]
    assert isinstance(shown["object"], dict)
    assert (len(shown["object"]), shown["object"]["…"]) == (51, "950 more")


def test_what_is_nested_without_end_is_cut() -> None:
    value: JsonValue = "x"
    for _ in range(500):
        value = [value]
    assert len(str(masked_params({}, {"deep": value}))) < 100


def test_logins_in_urls_are_masked() -> None:
    assert masked_params({}, {"url": "https://user:pass@example.com/x"}) == {"url": "https://***@example.com/x"}


def test_secrets_of_a_command_are_masked() -> None:
    command = ("run", "--api-key", "abc", "--token=abc", "--name", "x", "PASSWORD=abc", "--password", "--quiet")
    assert masked_command(command) == ("run", "--api-key", "***", "--token=***", "--name", "x", "PASSWORD=***", "--password", "***")


def test_a_secret_that_looks_like_an_option_is_masked_and_so_is_the_one_after_it() -> None:
    assert masked_command(("run", "--token", "-abc", "x")) == ("run", "--token", "***", "x")
    assert masked_command(("run", "--password", "--token", "abc")) == ("run", "--password", "***", "***")


def test_variables_of_a_caller_are_masked_like_parameters() -> None:
    caller = Caller(caller_id="agent-1", variables={"api_key": "nobody may see", "city": "Basel"})
    assert masked_caller(caller) == Caller(caller_id="agent-1", variables={"api_key": MASK, "city": "Basel"})
