"""Closing ends all tools, and no tool starts afterwards."""

import asyncio

import pytest
from structlog.testing import capture_logs

from engine.runtimes.failures import NotSent
from engine.runtimes.running.supervisor import Supervisor
from tests.runtimes.conftest import Routes, entry_of, eventually, is_gone, local_source
from tests.runtimes.test_supervisor import call, pid_of
from toolagent.contracts.calls import ErrorType


async def test_after_closing_nothing_is_started_or_left(supervisor: Supervisor) -> None:
    pids = await asyncio.gather(pid_of(supervisor, entry_of()), pid_of(supervisor, entry_of(tool_id="second")))
    await supervisor.close()
    assert [is_gone(pid) for pid in pids] == [True, True]
    with pytest.raises(NotSent) as caught:
        await call(supervisor, entry_of())
    assert caught.value.error_type is ErrorType.UNAVAILABLE


async def test_closing_ends_everything_and_says_in_a_line_what_it_cannot_note(supervisor: Supervisor, routes: Routes) -> None:
    pids = await asyncio.gather(pid_of(supervisor, entry_of()), pid_of(supervisor, entry_of(tool_id="second")))
    starting = asyncio.create_task(call(supervisor, entry_of(local_source("mute"), tool_id="mute")))
    await eventually(lambda: supervisor.route("mute") is not None)
    routes.away = True
    with capture_logs() as said:
        await supervisor.close()
    assert [is_gone(pid) for pid in pids] == [True, True]
    assert {line["tool_id"] for line in said if line["event"] == "end_of_tool_not_noted"} == {"versatile", "second", "mute"}
    with pytest.raises(NotSent):
        await starting
