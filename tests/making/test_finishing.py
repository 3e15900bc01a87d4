"""Threads are waited for, even if the waiter is cancelled."""

import asyncio
import threading

import pytest

from engine.making.workbench.finishing import finished

BOUND_S = 10.0


async def test_a_thread_has_ended_before_its_cancelled_caller_goes_on() -> None:
    begun, go_on, written = threading.Event(), threading.Event(), list[str]()

    def work() -> None:
        begun.set()
        go_on.wait(BOUND_S)
        written.append("done")

    working = asyncio.create_task(finished(work))
    await asyncio.to_thread(begun.wait, BOUND_S)
    for _ in range(3):
        working.cancel()
        await asyncio.wait([working], timeout=0.05)
    assert not working.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert written == ["done"]


async def test_what_it_gives_and_raises_is_passed_on() -> None:
    assert await finished(int, "12", base=16) == 18
    with pytest.raises(ValueError, match="invalid literal"):
        await finished(int, "no number")
