"""A blocked event loop is noticed, with its cause."""

import asyncio
import time
from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from engine.upkeep.hosts import loop_watch
from engine.upkeep.hosts.loop_watch import LoopWatch


def stands_still(looks: list[str]) -> None:
    """Block until the watch has looked: on a busy machine its thread may be late."""
    began = time.monotonic()
    while (took := time.monotonic() - began) < 0.6 or (not looks and took < 60):
        time.sleep(0.1)


async def test_a_pause_is_measured_and_told_with_what_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, running, watch = list[str](), vars(loop_watch)["_running"], LoopWatch(warn_s=0.3)

    def noted(loop_thread: int) -> Iterator[str]:
        yield from running(loop_thread)
        looks.append("over")

    monkeypatch.setattr(loop_watch, "_running", noted)
    with capture_logs() as logs:
        task = asyncio.create_task(watch.run())
        await asyncio.sleep(0)
        stands_still(looks)
        async with asyncio.timeout(60):
            while not logs:  # noqa: ASYNC110 - the watch has no event for this
                await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait((task,))
    assert 0.3 < watch.longest().longest_pause_s < 60
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [("loop_stood_still", "warning")]
    assert logs[0]["ran"][0].startswith("loop: stands_still (upkeep/test_loop_watch.py:")
