"""A loop that stands still is seen, and what made it do so."""

import asyncio
import time

from structlog.testing import capture_logs

from engine.upkeep.hosts.loop_watch import LoopWatch


def stands_still() -> None:
    time.sleep(0.6)


async def test_a_pause_is_measured_and_told_with_what_ran() -> None:
    watch = LoopWatch(warn_s=0.3)
    with capture_logs() as logs:
        task = asyncio.create_task(watch.run())
        await asyncio.sleep(0)
        stands_still()
        async with asyncio.timeout(10):
            while not logs:  # noqa: ASYNC110 - the watch has no event for this
                await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait((task,))
    assert 0.3 < watch.longest().longest_pause_s < 5
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [("loop_stood_still", "warning")]
    assert logs[0]["ran"][0].startswith("loop: stands_still (upkeep/test_loop_watch.py:")
