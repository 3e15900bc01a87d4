"""Hosts, draining of one, and the status of the service: once, in a pipe, and as a live table."""

import json
import os
import pty
import signal
import subprocess
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from typer.testing import Result

from tests.cli.test_terminal import INTERRUPTIBLE
from tests.programs import Program

if TYPE_CHECKING:
    from tests.cli.conftest import Service

Invoke = Callable[..., Result]
BOUND_S = 60


def test_hosts_are_listed_with_what_is_under_way_on_each(toolagent: Invoke, service: "Service") -> None:
    service.left = 2
    head, *lines = toolagent("hosts", "list").stdout.splitlines()
    assert head.split() == ["host", "state", "draining", "since", "slots", "calls", "tools", "sessions"]
    assert [line.split()[:2] for line in lines] == [["host-1", "alive"], ["host-2", "dead"]]
    assert lines[0].split()[-6:] == ["default:", "4", "default:", "2", "1", "0"]
    assert json.loads(toolagent("hosts", "list", "--json").stdout)["hosts"][0]["calls"] == {"default": 2}


def test_a_host_is_drained_until_nothing_is_left_and_takes_calls_again(toolagent: Invoke, service: "Service") -> None:
    begun = toolagent("hosts", "drain", "host-1")
    assert (begun.exit_code, begun.stdout) == (0, "host-1 drains: 3 calls, 1 tools\n")
    assert "warning: No other host takes calls." in begun.stderr
    followed = toolagent("hosts", "drain", "host-1", "--wait")
    assert (followed.exit_code, followed.stdout) == (0, "host-1 drained\n")
    assert "host-1 drains: 2 calls, 1 tools" in followed.stderr
    assert toolagent("hosts", "drain", "host-1", "--undo").stdout == "host-1 takes calls\n"
    assert service.left is None


def test_who_waits_for_a_drain_that_somebody_ends_is_told_so(toolagent: Invoke, service: "Service") -> None:
    service.is_undone = True
    followed = toolagent("hosts", "drain", "host-1", "--wait")
    assert (followed.exit_code, followed.stdout) == (1, "host-1 takes calls\n")


@pytest.mark.parametrize(("words", "code"), [(("host-9",), 1), (("host-1", "--undo", "--wait"), 2), ((), 2)])
def test_a_drain_that_cannot_be_is_refused(toolagent: Invoke, words: tuple[str, ...], code: int) -> None:
    assert toolagent("hosts", "drain", *words).exit_code == code


def test_the_status_counts_and_names_what_needs_a_look(toolagent: Invoke) -> None:
    shown = toolagent("status").stdout
    lines = [line.split() for line in shown.splitlines()]
    assert ["hosts", "1", "alive,", "1", "draining,", "1", "dead"] in lines
    assert ["sessions", "3", "ready,", "1", "stopping"] in lines
    assert ["session-0123456789abcdef", "servers", "4"] in lines
    assert ["breaker", "task-1", "running"] in lines
    assert 'servers  It is left alone. {"server_id": "s-1"}' in shown
    assert json.loads(toolagent("status", "--json").stdout)["system"]["warm"][0]["tool_id"] == "stitcher"


def test_a_watch_in_a_pipe_prints_each_look_and_outlives_a_service_that_is_away(service: "Service") -> None:
    with _running(service.url, "status", "--watch", "--json", "--every", "0.2") as program:
        assert program.stdout is not None
        assert program.stderr is not None
        assert json.loads(program.stdout.readline())["system"]["hosts"]["alive"] == 1
        service.is_away = True
        assert b"asked again" in program.stderr.readline()
        service.is_away = False
        service.left = 1
        while json.loads(program.stdout.readline())["hosts"][0]["draining_since"] is None:
            pass
        program.send_signal(signal.SIGINT)
        assert program.wait(BOUND_S) == 130
        assert program.stderr.read() == b""


def test_a_watch_at_a_terminal_is_drawn_anew_says_that_the_service_is_away_and_ends_with_ctrl_c(service: "Service") -> None:
    leader, follower = pty.openpty()
    with _running(service.url, "status", "--watch", "--every", "0.2", stdout=follower) as program:
        os.close(follower)
        _read_until(leader, b"host-1")
        service.is_away = True
        _read_until(leader, b"has not answered")
        _read_until(leader, b"host-1")
        service.is_away = False
        _read_until(leader, b"Ctrl-C ends")
        program.send_signal(signal.SIGINT)
        assert program.wait(BOUND_S) == 130
    os.close(leader)


def test_a_watch_ends_when_the_service_refuses_it(toolagent: Invoke, service: "Service") -> None:
    service.needs_key = True
    assert toolagent("status", "--watch").exit_code == 1


@contextmanager
def _running(url: str, *words: str, stdout: int = subprocess.PIPE) -> Generator[Program]:
    env = {"TOOL_AGENT_URL": url, "COLUMNS": "120", "LINES": "60", "TERM": "xterm-256color"}
    command = [*INTERRUPTIBLE, *words]
    with Program(command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, env=env) as program:
        try:
            yield program
        finally:
            program.kill()


def _read_until(leader: int, wanted: bytes) -> None:
    seen = b""
    while wanted not in seen:
        seen += os.read(leader, 65_536)
