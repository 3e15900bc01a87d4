"""What an attempt knows of earlier attempts, on its host and on hosts that died."""

import dataclasses

import pytest
from temporalio.testing import ActivityEnvironment

from activities.heartbeats import beating


@pytest.mark.promise("calls-end")
@pytest.mark.parametrize(
    ("attempt", "heard", "knows"),
    [(1, [], (2, 4.5)), (3, [], (4, 4.5)), (3, ["", 1, 5.5, 1], (3, 5.5))],
    ids=["the first here", "nothing was heard of those here", "one here only waited"],
)
async def test_attempts_on_hosts_that_died_count_and_so_does_the_time_that_the_tool_had_there(
    attempt: int, heard: list[object], knows: tuple[int, float]
) -> None:
    async def known() -> tuple[int, float]:
        async with beating(2, ("", 1, 4.5, 9)) as turn:
            return turn.tries, turn.earlier_s

    env = ActivityEnvironment()
    env.info = dataclasses.replace(env.info, attempt=attempt, heartbeat_details=heard)
    assert await env.run(known) == knows
