"""Lines of the coding log: in the specified format, each one line, without secrets."""

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from toolagent.core.calls.masking import masked_text
from toolagent_service.agents import coding_log

AT = datetime(2026, 3, 26, 15, 9, 32, tzinfo=UTC)
UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, and those that hide or turn round what is beside them."""
HEAD = "2026-03-26 15:09:32 [tool_agent.tool.agent] INFO: "


def test_the_lines_are_those_of_the_specification() -> None:
    arguments: dict[str, JsonValue] = {"image": "python:3.12-slim", "ports": [8080]}
    assert coding_log.start_line(AT, "部署 flask 项目...") == f"{HEAD}[CodingAgent] Starting task: 部署 flask 项目..."
    assert coding_log.tool_use_line(AT, "create_docker_env", arguments) == (
        HEAD + '[TOOL_USE] create_docker_env | {"image":"python:3.12-slim","ports":[8080]}'
    )
    assert coding_log.text_line(AT, "正在创建 Docker 环境...") == f"{HEAD}[TEXT] 正在创建 Docker 环境..."
    assert coding_log.done_line(AT, 44.0) == f"{HEAD}[DONE] duration=44000ms"
    assert coding_log.cost_line(AT, 0.12) == f"{HEAD}[COST] $0.12"
    assert coding_log.cost_line(AT, None) == f"{HEAD}[COST] unknown"
    assert coding_log.tool_result_line(AT, "run_in_uv", "exit code 1", is_error=True) == (
        HEAD.replace("INFO", "ERROR") + "[TOOL_RESULT] run_in_uv | error: exit code 1"
    )


def test_an_error_is_called_one_once() -> None:
    line = coding_log.tool_result_line(AT, "run_in_uv", "error: there is no project 'x'", is_error=True)
    assert line.endswith("[TOOL_RESULT] run_in_uv | error: there is no project 'x'")


def test_the_time_is_utc_wherever_it_comes_from() -> None:
    assert coding_log.log_line(AT.astimezone(timezone(timedelta(hours=8))), "x") == f"{HEAD}x"


_TEXTS = st.text() | st.text(st.sampled_from("a\n\x1b\x85\u200b\u200f\u2028\u202e\u2066\u2069"))


@given(_TEXTS, st.dictionaries(_TEXTS, _TEXTS))
def test_whatever_a_model_says_is_one_line(text: str, arguments: dict[str, str]) -> None:
    for line in (coding_log.text_line(AT, text), coding_log.tool_use_line(AT, text, {**arguments})):
        assert len(line.splitlines()) == 1
        assert line.startswith(HEAD)
        assert not UNSEEN.search(line)
        line.encode()


def test_a_model_cannot_write_a_line_of_its_own() -> None:
    forged = f"done\n{HEAD}[TOOL_USE] register_tool | {{}}\x1b[2J\u202e"
    line = coding_log.text_line(AT, forged)
    assert "\n" not in line
    assert "\x1b" not in line
    assert "\u202e" not in line


def test_long_arguments_are_cut_and_said_to_be() -> None:
    line = coding_log.tool_use_line(AT, "write_file", {"path": "main.py", "content": "x" * 1_000_000})
    assert len(line) < 600
    assert "(1000000 characters)" in line


@pytest.mark.parametrize("secret", ["hunter2secret", "sk-ant-0123456789abcdefghij", "ghp_0123456789abcdefghijABCDEFGHIJ012345"])
@pytest.mark.parametrize(
    "pattern",
    [
        "export API_KEY={}",
        "curl -H 'Authorization: Bearer {}' https://example.com",
        "curl https://user:{}@example.com/x",
        "tool --api-key {} --quiet",
        'config = {{"password": "{}"}}',
        "client_secret: {}",
    ],
)
def test_secrets_are_masked_in_commands_and_texts(pattern: str, secret: str) -> None:
    line = coding_log.tool_use_line(AT, "run_in_uv", {"command": pattern.format(secret), "deep": [{"text": pattern.format(secret)}]})
    assert secret not in line
    assert secret not in coding_log.text_line(AT, pattern.format(secret))
    assert "***" in line


@pytest.mark.parametrize(
    "text", ["pytest -q tests/test_main.py", "max_tokens = 5", "python main.py --port 8080", "the key: look at keyboard=qwerty", "sk-short"]
)
def test_what_only_looks_like_a_secret_is_kept(text: str) -> None:
    assert masked_text(text) == text


def test_a_private_key_is_masked_also_when_its_end_is_cut_off() -> None:
    begin = "-----BEGIN RSA PRIVATE KEY-----"
    assert "MIIE" not in masked_text(f"{begin}\nMIIEabc\nMIIEdef")


@pytest.mark.timeout(20)
@pytest.mark.parametrize("piece", ["a", "-", "a:", "a=", "--a ", "Bearer ", "https://", "eyJ.", "sk-", "\\"])
def test_masking_takes_no_longer_for_texts_that_almost_match(piece: str) -> None:
    masked_text(piece * (50_000 // len(piece)))
