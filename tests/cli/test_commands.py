"""The commands on a real server: what is printed where, and the exit codes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pydantic import JsonValue
from typer.testing import Result

if TYPE_CHECKING:
    from tests.cli.conftest import Service

Invoke = Callable[..., Result]


def test_the_tools_are_a_table_on_stdout_and_faults_are_warnings_on_stderr(toolagent: Invoke) -> None:
    result = toolagent("tools")
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["id", "echo", "stitcher", "refuser", "breaker", "endless"]
    assert "tools/bad.json: version" in result.stderr


def test_tools_can_be_searched_and_filtered(toolagent: Invoke) -> None:
    found = json.loads(toolagent("tools", "--search", "stitch", "--json").stdout)
    assert [tool["tool_id"] for tool in found["tools"]] == ["stitcher"]
    found = json.loads(toolagent("tools", "--category", "image", "--json").stdout)
    assert [tool["tool_id"] for tool in found["tools"]] == ["stitcher"]
    assert len(json.loads(toolagent("tools", "--limit", "1", "--json").stdout)["tools"]) == 1
    nothing = toolagent("tools", "--category", "none")
    assert (nothing.exit_code, nothing.stdout) == (0, "")


def test_a_tool_is_shown_with_its_parameters_and_a_line_to_copy(toolagent: Invoke) -> None:
    result = toolagent("show", "echo")
    assert result.exit_code == 0
    assert "Gives back what it is [bold]given[/bold]." in result.stdout
    assert "toolagent run echo text=TEXT" in result.stdout
    assert json.loads(toolagent("show", "echo", "--json").stdout)["tool_id"] == "echo"


def test_a_call_prints_its_result_as_json_and_sends_typed_parameters(toolagent: Invoke, service: "Service") -> None:
    words = ("text=12", "count=3", "tags=a", "tags=b", "loud=yes", "extra:={}")
    result = toolagent("run", "echo", *words, "--timeout", "5", "--key", "k", "--version", "1.0.0")
    expected: dict[str, JsonValue] = {"text": "12", "count": 3, "tags": ["a", "b"], "loud": True, "extra": {}}
    assert (result.exit_code, json.loads(result.stdout)) == (0, expected)
    options = {"mode": "async", "timeout_s": 5.0, "idempotency_key": "k", "version": "1.0.0"}
    assert service.calls == [{"tool_id": "echo", "params": expected, **options}]


def test_progress_goes_to_stderr_in_plain_lines(toolagent: Invoke) -> None:
    result = toolagent("run", "echo", "text=x")
    assert result.stderr.splitlines() == ["call-00000000 running", "call-00000000 running: half way"]


def test_json_prints_the_whole_result(toolagent: Invoke) -> None:
    whole = json.loads(toolagent("run", "echo", "text=x", "--json").stdout)
    assert (whole["status"], whole["result"]) == ("success", {"text": "x"})


def test_parameters_may_come_as_json_from_an_option_a_file_or_a_word(toolagent: Invoke, tmp_path: Path) -> None:
    (tmp_path / "params.json").write_text('{"text": "file"}', encoding="utf-8")
    for words, text in (
        (("--params", '{"text": "option"}'), "option"),
        (("--params", f"@{tmp_path / 'params.json'}"), "file"),
        (('{"text": "word"}',), "word"),
    ):
        assert json.loads(toolagent("run", "echo", *words).stdout) == {"text": text}


def test_files_are_uploaded_and_results_are_saved_without_overwriting(toolagent: Invoke, tmp_path: Path) -> None:
    pictures = [tmp_path / "a.png", tmp_path / "b.png"]
    for picture in pictures:
        picture.write_bytes(picture.name.encode() * 100)
    out = tmp_path / "out"
    out.mkdir()
    (out / "a.png").write_bytes(b"mine")
    result = toolagent("run", "stitcher", *(f"images=@{picture}" for picture in pictures), "--out", str(out))
    assert result.exit_code == 0
    saved = {path.name: path.read_bytes() for path in out.iterdir()}
    assert saved.pop("a.png") == b"mine"
    assert saved.pop("b.png") == pictures[1].read_bytes()
    assert list(saved.values()) == [pictures[0].read_bytes()]
    assert all(file_id.startswith("file_") for file_id in json.loads(result.stdout)["images"])


def test_a_file_name_of_the_service_cannot_leave_the_folder(toolagent: Invoke, service: "Service", tmp_path: Path) -> None:
    file_id = f"file_{'0' * 32}"
    service.files[file_id] = ("../../escaped.png", b"x")
    assert toolagent("run", "echo", f"text={file_id}", "--out", str(tmp_path / "deep" / "out")).exit_code == 0
    assert [path.name for path in tmp_path.rglob("*.png")] == ["escaped.png"]
    assert (tmp_path / "deep" / "out" / "escaped.png").read_bytes() == b"x"


def test_a_file_the_service_does_not_have_is_a_failure_after_the_result(toolagent: Invoke, tmp_path: Path) -> None:
    result = toolagent("run", "echo", f"text=file_{'0' * 32}", "--out", str(tmp_path))
    assert (result.exit_code, list(tmp_path.iterdir())) == (1, [])
    assert json.loads(result.stdout) == {"text": f"file_{'0' * 32}"}


def test_a_failed_call_is_exit_code_1_with_each_issue_on_its_line(toolagent: Invoke) -> None:
    result = toolagent("run", "refuser")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.splitlines()[0].startswith("validation_error:")
    assert [line.split(":")[0].strip() for line in result.stderr.splitlines()[1:]] == ["$.width", "$.height"]


def test_text_of_the_service_cannot_steer_the_terminal(toolagent: Invoke) -> None:
    result = toolagent("run", "breaker")
    assert result.exit_code == 1
    assert "\x1b" not in result.stderr
    assert "[/red]" in result.stderr


def test_a_call_that_is_not_awaited_can_be_followed_and_cancelled(toolagent: Invoke, service: "Service") -> None:
    task_id = json.loads(toolagent("run", "echo", "text=x", "--async").stdout)["task_id"]
    assert json.loads(toolagent("task", task_id, "--json").stdout)["status"] == "running"
    assert json.loads(toolagent("task", task_id, "--follow").stdout) == {"text": "x"}
    endless = json.loads(toolagent("run", "endless", "--async").stdout)["task_id"]
    assert toolagent("task", endless).exit_code == 0
    assert toolagent("task", endless, "--cancel").exit_code == 0
    assert service.cancelled == [endless]
    assert toolagent("task", endless).exit_code == 1


def test_the_status_shows_checks_and_what_runs(toolagent: Invoke, service: "Service") -> None:
    result = toolagent("status")
    assert result.exit_code == 0
    assert "4711" in result.stdout
    assert "echo" not in result.stdout
    service.well = False
    sick = toolagent("status", "--json")
    assert (sick.exit_code, json.loads(sick.stdout)["health"]["status"]) == (1, "unavailable")


@pytest.mark.parametrize(
    "words",
    [
        ("run", "echo", "count=abc"),
        ("run", "echo", "text"),
        ("run", "echo", "text=@/no/such/file"),
        ("run", "echo", "text=@/dev/null/x"),
        ("run", "stitcher", "images=@/no/such/picture.png"),
        ("run", "stitcher", "images=@/"),
        ("run", "echo", "--params", "{oops"),
        ("run", "echo", "--params", "@/no/such/file.json"),
        ("run", "echo", "--params", "[]"),
        ("run", "echo", "--timeout", "0"),
        ("run", "echo", "--timeout", "soon"),
        ("run", "echo", "--key", ""),
        ("run", "echo", "--async", "--out", "."),
        ("run", "echo", "--out", "/dev/null/x"),
        ("run", "../health"),
        ("show", "Echo!"),
        ("tools", "--url", "127.0.0.1:8001"),
        ("tools", "--url", "http://"),
        ("tools", "--url", "http://[::1"),
        ("tools", "--api-key", "line\nbreak"),
        ("tools", "--api-key", "schlüssel"),
        ("tools", "--no-such-option"),
        ("no-such-command",),
        ("run",),
    ],
)
def test_wrong_usage_is_exit_code_2_and_calls_nothing(toolagent: Invoke, service: "Service", words: tuple[str, ...]) -> None:
    result = toolagent(*words)
    assert (result.exit_code, result.stdout, service.calls) == (2, "", [])
    assert result.stderr
    assert "Traceback" not in result.stderr


def test_a_text_parameter_takes_no_file_that_is_not_utf8(toolagent: Invoke, tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    assert toolagent("run", "echo", f"text=@{tmp_path / 'bytes'}").exit_code == 2


def test_an_unknown_tool_is_answered_with_the_nearest_ids_of_the_service(toolagent: Invoke) -> None:
    for command in ("show", "run"):
        result = toolagent(command, "ecko")
        assert (result.exit_code, result.stdout) == (1, "")
        assert "echo" in result.stderr


def test_an_unknown_task_is_a_failure(toolagent: Invoke) -> None:
    assert toolagent("task", "call-none").exit_code == 1
    assert toolagent("task", "..").exit_code == 1


def test_a_wrong_key_names_the_setting_and_the_right_one_opens(toolagent: Invoke, service: "Service") -> None:
    service.needs_key = True
    refused = toolagent("tools", TOOL_AGENT_API_KEY="wrong-key")
    assert refused.exit_code == 1
    assert "TOOL_AGENT_API_KEY" in refused.stderr
    assert "wrong-key" not in refused.stderr
    assert toolagent("tools", TOOL_AGENT_API_KEY="the-right-key").exit_code == 0
    assert toolagent("tools", "--api-key", "the-right-key").exit_code == 0


def test_an_unreachable_service_is_exit_code_3_and_names_the_url_and_the_remedy(toolagent: Invoke) -> None:
    result = toolagent("tools", "--url", "http://127.0.0.1:1")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "http://127.0.0.1:1" in result.stderr
    assert "make up" in result.stderr


def test_a_url_of_something_else_is_said_to_be_so(toolagent: Invoke, service: "Service") -> None:
    result = toolagent("tools", "--url", f"{service.url}/somewhere")
    assert (result.exit_code, result.stdout) == (1, "")
