"""The installed command, run as a process of its own."""

import json
import os
import select
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.test_terminal import INTERRUPTIBLE, SCRIPT

if TYPE_CHECKING:
    from tests.cli.conftest import Invoke, Service

BOUND_S = 60.0


def run(service: "Service", *words: str | bytes, **env: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([SCRIPT, *words], capture_output=True, timeout=BOUND_S, check=False, env={"TOOL_AGENT_URL": service.url, **env})


def test_the_script_prints_help_with_every_command(service: "Service") -> None:
    shown = run(service, "--help")
    assert shown.returncode == 0
    assert all(command.encode() in shown.stdout for command in ("tools", "show", "run", "status", "task"))


def test_a_call_through_the_script_prints_nothing_but_json_on_stdout(service: "Service") -> None:
    done = run(service, "run", "echo", "text=你好")
    assert (done.returncode, json.loads(done.stdout)) == (0, {"text": "你好"})


def test_a_terminal_without_unicode_gets_escaped_json(service: "Service") -> None:
    done = run(service, "run", "echo", 'text:="\\u4f60"', PYTHONIOENCODING="ascii")
    assert (done.returncode, json.loads(done.stdout.decode("ascii"))) == (0, {"text": "你"})
    assert run(service, "show", "echo", PYTHONIOENCODING="ascii").returncode == 0


def test_bytes_that_are_not_utf8_are_wrong_usage(service: "Service") -> None:
    refused = run(service, "run", "echo", b"text=\xff")
    assert (refused.returncode, refused.stdout, service.calls) == (2, b"", [])
    assert b"Traceback" not in refused.stderr


@pytest.mark.parametrize("word", [b"text=\xff", b"\xff=1", b"\xff"])
def test_bytes_that_are_not_utf8_are_wrong_usage_wherever_they_stand(toolagent: "Invoke", service: "Service", word: bytes) -> None:
    refused = toolagent("run", "echo", os.fsdecode(word))
    assert (refused.exit_code, refused.stdout, service.calls) == (2, "", [])


def test_a_batch_on_stdin_that_is_no_text_is_wrong_usage(service: "Service") -> None:
    refused = subprocess.run([SCRIPT, "batch", "-"], input=b"\xff", capture_output=True, timeout=BOUND_S, check=False)
    assert (refused.returncode, refused.stdout, service.batches) == (2, b"", [])
    assert b"Traceback" not in refused.stderr


def test_mcp_messages_may_come_from_a_file_and_nothing_at_all_is_the_end(tmp_path: Path) -> None:
    (tmp_path / "messages").write_text('{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n', "utf-8")
    for given, answers in ((tmp_path / "messages", 1), (Path("/dev/null"), 0)):
        with given.open("rb") as stdin:
            command = [SCRIPT, "mcp", "stdio", "--url", "http://127.0.0.1:1"]
            done = subprocess.run(command, stdin=stdin, capture_output=True, timeout=BOUND_S, check=False)
        assert (done.returncode, len(done.stdout.splitlines())) == (0, answers), done.stderr


@pytest.mark.parametrize("way", ["a file", "a pipe"])
def test_a_line_of_mcp_without_end_is_wrong_usage(way: str) -> None:
    command = [SCRIPT, "mcp", "stdio", "--url", "http://127.0.0.1:1"]
    with Path("/dev/zero").open("rb") as stdin, subprocess.Popen(["/bin/cat"], stdin=stdin, stdout=subprocess.PIPE) as piped:
        done = subprocess.run(command, stdin=stdin if way == "a file" else piped.stdout, capture_output=True, timeout=BOUND_S, check=False)
        piped.kill()
    assert (done.returncode, b"64 MiB" in done.stderr) == (2, True), done.stderr


def test_an_unreachable_service_ends_the_script_with_3(service: "Service") -> None:
    assert run(service, "status", "--url", "http://127.0.0.1:1").returncode == 3


def test_ctrl_c_asks_the_service_to_cancel_the_call(service: "Service") -> None:
    command = [*INTERRUPTIBLE, "run", "endless"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env={"TOOL_AGENT_URL": service.url}) as process:
        assert service.followed.wait(BOUND_S)
        process.send_signal(signal.SIGINT)
        _, messages = process.communicate(timeout=BOUND_S)
    assert (process.returncode, service.cancelled) == (130, ["call-00000000"])
    assert b"Traceback" not in messages
    assert b"cancel" in messages


def test_ctrl_c_in_the_middle_of_the_hand_over_cancels_what_was_handed_over(service: "Service") -> None:
    command = [*INTERRUPTIBLE, "run", "endless"]
    service.may_accept.clear()
    with subprocess.Popen(command, stderr=subprocess.PIPE, env={"TOOL_AGENT_URL": service.url}) as process:
        assert service.asked.wait(BOUND_S)
        process.send_signal(signal.SIGINT)
        service.may_accept.set()
        _, messages = process.communicate(timeout=BOUND_S)
    assert (process.returncode, service.cancelled) == (130, ["call-00000000"]), messages


def test_a_second_ctrl_c_leaves_a_service_that_does_not_answer(service: "Service") -> None:
    command = [*INTERRUPTIBLE, "run", "endless"]
    service.may_accept.clear()
    with subprocess.Popen(command, stderr=subprocess.PIPE, env={"TOOL_AGENT_URL": service.url}) as process:
        assert service.asked.wait(BOUND_S)
        assert process.stderr
        # Two that come close upon each other are one.
        process.send_signal(signal.SIGINT)
        while not select.select([process.stderr], [], [], 3)[0]:
            process.send_signal(signal.SIGINT)
        service.may_accept.set()
        _, messages = process.communicate(timeout=BOUND_S)
    assert (process.returncode, service.cancelled) == (130, []), messages
    assert b"may have taken it" in messages


@pytest.mark.parametrize("command", [["tools", "--json"], ["show", "echo"], ["--help"]])
def test_a_reader_that_goes_away_is_no_failure(service: "Service", command: list[str]) -> None:
    with subprocess.Popen(
        [SCRIPT, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={"TOOL_AGENT_URL": service.url}
    ) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        messages = process.stderr.read()
        process.wait(BOUND_S)
    assert (process.returncode, messages) == (0, b"")


@pytest.mark.parametrize("command", ["tools", "bad-command"])
def test_a_failure_stays_one_when_its_reader_has_left(command: str) -> None:
    # With a buffer, Python's last flush fails, and gives 120 whatever the command's code is.
    variables = {"TOOL_AGENT_URL": "http://127.0.0.1:1", "PYTHONUNBUFFERED": "1"}
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run([SCRIPT, command], stdout=writer, stderr=writer, timeout=BOUND_S, check=False, env=variables)
    finally:
        os.close(writer)
    assert done.returncode == 1


def test_a_stream_that_the_caller_closed_is_no_traceback(service: "Service") -> None:
    command = ["/bin/sh", "-c", '"$0" "$@" >&-', SCRIPT, "show", "echo"]
    done = subprocess.run(command, capture_output=True, timeout=BOUND_S, check=False, env={"TOOL_AGENT_URL": service.url})
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_batch_without_a_stdin_is_wrong_usage(service: "Service") -> None:
    command = ["/bin/sh", "-c", '"$0" batch - <&-', SCRIPT]
    done = subprocess.run(command, capture_output=True, timeout=BOUND_S, check=False, env={"TOOL_AGENT_URL": service.url})
    assert (done.returncode, b"Traceback" in done.stderr) == (2, False), done.stderr
