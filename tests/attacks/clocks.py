"""Clocks that jump while the service runs, by libfaketime."""

import time
from collections.abc import Mapping
from pathlib import Path

from tests.attacks.attack import Attack, Kind, Target, answered, expect
from tests.attacks.catalog import ATTACKER
from tests.machine import lacking
from tests.system.waiting import wait_until

__all__ = ["KIND"]

_CLOCK = "clock"
_NOTICED_S = 2.0


def _faked(folder: Path) -> Mapping[str, str]:
    library = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
    if library is None:
        lacking("faketime is not installed (Debian: apt-get install faketime)")
    clock = folder / _CLOCK
    clock.write_text("+0", "utf-8")
    variables = {"FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_CACHE_DURATION": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    return {"LD_PRELOAD": str(library), **variables}


def _jumps(target: Target, to: str) -> str:
    """The wall clock jumps while a call is under way: that call and those after it are answered, and took what they took."""
    clock = target.data.parent.parent / _CLOCK
    call_id = target.call(ATTACKER, {"mode": "sleep", "seconds": 3}, mode="async").json()["task_id"]
    clock.write_text(to, "utf-8")
    try:
        time.sleep(_NOTICED_S)
        told = [answered(target.call(tool_id, params), {200}) for tool_id, params in (("echo", {"message": "x"}), (ATTACKER, _NOW))]
        wait_until(lambda: target.ask("GET", f"/tasks/{call_id}").json()["result"], "the call that was under way ends", 30.0)
        task = target.ask("GET", f"/tasks/{call_id}").json()
        took = task["result"]["execution_time"]
        expect(task["status"] == "completed" and 0 <= took < 30, f"it {task['status']} after {took} s")
        return ", ".join([*told, f"{took:.1f} s"])
    finally:
        clock.write_text("+0", "utf-8")


_NOW: Mapping[str, object] = {"mode": "sleep", "seconds": 0}


def forwards(target: Target) -> str:
    return _jumps(target, "+30d")


def backwards(target: Target) -> str:
    return _jumps(target, "-30d")


KIND = Kind(
    "clocks",
    (
        Attack("forwards", "the clock jumps 30 days forwards in the middle of a call", forwards, in_ci=False),
        Attack("backwards", "the clock jumps 30 days backwards in the middle of a call", backwards, in_ci=False),
    ),
    environment=_faked,
)
