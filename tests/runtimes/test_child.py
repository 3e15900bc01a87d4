"""A child process inherits exactly what it was given, whichever loop it was started on."""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from engine.runtimes.process.child import Child


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_a_child_has_the_descriptors_it_is_given_and_no_other(tmp_path: Path, loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def listed() -> list[str]:
        given, kept = os.pipe()
        os.set_inheritable(kept, True)
        with (tmp_path / "out").open("wb") as out:
            child = Child(["/bin/ls", "/proc/self/fd"], tmp_path, {}, (out.fileno(), out.fileno(), out.fileno()), [given])
            assert await child.wait() == child.returncode == 0
        os.close(given)
        os.close(kept)
        # And the one it lists them by.
        return [name for name in (tmp_path / "out").read_text().split() if name != str(given)]

    with asyncio.Runner(loop_factory=loop) as runner:
        assert len(runner.run(listed())) == 4


async def test_whoever_stops_waiting_does_not_stop_the_others(tmp_path: Path) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    child = Child(["/bin/sleep", "1000"], tmp_path, {}, (null, null, null), ())
    os.close(null)
    first, second = asyncio.create_task(child.wait()), asyncio.create_task(child.wait())
    await asyncio.sleep(0)
    first.cancel()
    assert child.returncode is None
    os.kill(child.pid, signal.SIGKILL)
    assert await asyncio.wait_for(second, 60) == -9
    assert await child.wait() == -9


async def test_a_program_that_is_not_there_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Child(["/nonexistent"], tmp_path, {}, (0, 1, 2), ())
