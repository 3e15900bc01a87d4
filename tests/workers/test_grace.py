"""One clock for all work of a stopping process."""

import asyncio
from types import SimpleNamespace

import pytest

from workers.grace import Grace


async def test_the_clock_of_the_second_who_asks_is_that_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000.0
    monkeypatch.setattr("workers.grace.time", SimpleNamespace(monotonic=lambda: now))
    grace = Grace(100)
    assert grace.left_s == 100
    now += 99.5
    assert grace.left_s == 0.5
    with grace.held():
        async with asyncio.timeout(30):
            await grace.idle()  # by then only the last of it is left, which is the workers'


async def test_what_is_in_hand_is_waited_for_and_no_longer() -> None:
    grace = Grace(60)

    async def work() -> None:
        with grace.held():
            await asyncio.sleep(0.3)

    working = [asyncio.create_task(work()) for _ in range(2)]
    await asyncio.sleep(0)
    await grace.idle()
    assert all(task.done() for task in working)
    assert grace.left_s > 50
