"""One clock for all that a process has in hand when it stops."""

import asyncio
import time

from workers.grace import Grace


async def test_the_clock_of_the_second_who_asks_is_that_of_the_first() -> None:
    grace = Grace(1.5)
    first = grace.left_s
    await asyncio.sleep(0.6)
    assert grace.left_s < first - 0.5
    began = time.monotonic()
    with grace.held():
        await grace.idle()  # by then only the last of it is left, which is the workers'
    assert time.monotonic() - began < 0.3


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
