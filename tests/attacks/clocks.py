"""The wall clock jumps an hour ahead and two hours back, while calls run, between them, and under a sweep."""

import secrets
import shutil
import subprocess
import time
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from tests.attacks.attack import Attack, Kind, Target, answered, expect
from tests.attacks.catalog import ATTACKER, put_tool
from tests.attacks.peer import Peer
from tests.machine import lacking
from tests.system.waiting import wait_until

__all__ = ["KIND"]

_SHIM = Path(__file__).with_name("clock_shim.c")
_FILE = "clock"
_HOUR_S = 3600
_JUMPS_S = (_HOUR_S, -_HOUR_S, 0)
"""As seen from the right time: an hour ahead, two hours back from there, and right again."""

_KNOWN_S = 5.0
"""A heartbeat takes two seconds, and some."""

_SWEPT_S = 65.0
"""The sweeps of calls and tasks come every minute."""


@contextmanager
def _on_a_clock_of_its_own(folder: Path, _peer: Peer) -> Generator[Mapping[str, str]]:
    """Only the service's process is affected; its Temporal server, a Go program, keeps the machine's clock."""
    compiler = shutil.which("cc")
    if compiler is None:
        lacking("no compiler (Debian: apt-get install gcc libc6-dev)")
    shim = folder / "clock.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", shim, _SHIM], check=True, capture_output=True)
    _shift(folder / _FILE, 0)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("LD_PRELOAD", str(shim))
        environment.setenv("ATTACK_CLOCK_SHIFT", str(folder / _FILE))
        yield {}


def in_calls(target: Target) -> str:
    """Three calls run for six seconds across each jump: none times out, and none takes longer."""
    with ThreadPoolExecutor(3) as callers, _jumping(target) as jump:
        began = time.monotonic()
        running = [callers.submit(target.call, ATTACKER, {"mode": "sleep", "seconds": 6}) for _ in range(3)]
        for shift_s in _JUMPS_S:
            time.sleep(1.5)
            jump(shift_s)
        told = [answered(one.result(), {200}) for one in running]
    expect(time.monotonic() - began < 20, f"they took {time.monotonic() - began:.0f} s")
    return ", ".join(told)


def between(target: Target) -> str:
    """For longer than a lease after each jump, calls are answered, the host is alive and `/health` is well."""
    lease_s = 12.0 if target.is_long else 3.0
    asked = 0
    with _jumping(target) as jump:
        for shift_s in _JUMPS_S:
            jump(shift_s)
            until = time.monotonic() + lease_s
            while time.monotonic() < until:
                _well(target, ATTACKER if asked % 5 == 0 else "echo")
                asked += 1
            expect(_is_alive(target), f"the host is not alive {lease_s:g} s after a jump to {shift_s} s")
    return f"{asked} calls"


def again(target: Target) -> str:
    """A repeated call with the same key stays the same call, before and after each jump."""
    key = secrets.token_hex(8)
    first = _keyed(target, key)
    with _jumping(target) as jump:
        for shift_s in _JUMPS_S:
            jump(shift_s)
            expect(_keyed(target, key) == first, f"it was made again after a jump to {shift_s} s")
    return "the same one four times"


def swept(target: Target) -> str:
    """A call runs during the sweeps for leftovers, with the clock an hour ahead, then an hour behind."""
    put_tool(target.data, "attack:long", timeoutSeconds=200)
    wait_until(lambda: target.ask("GET", "/tools/attack:long").is_success, "the tool is known")
    seconds = _SWEPT_S if target.is_long else 3.0
    with _jumping(target) as jump:
        task = target.post("/run_tool", {"tool_id": "attack:long", "params": {"mode": "sleep", "seconds": 2 * seconds}, "mode": "async"})
        for shift_s in (_HOUR_S, -_HOUR_S):
            jump(shift_s)
            time.sleep(seconds)
        where = f"/tasks/{task.json()['task_id']}"
        result = wait_until(lambda: target.ask("GET", where).json()["result"], "the call ends", 30.0)
    expect(result["status"] == "success", f"it failed: {str(result)[:300]}")
    return "the call succeeds"


@contextmanager
def _jumping(target: Target) -> Generator[Callable[[int], None]]:
    """Yields a function that sets the service's clock. The clock is correct again after the block."""
    file = target.data.parent.parent / _FILE

    def jump(shift_s: int) -> None:
        _shift(file, shift_s)
        said = target.call("echo", {"message": "when"}).json()["executed_at"]
        off_s = (datetime.fromisoformat(said) - datetime.now(UTC)).total_seconds()
        expect(abs(off_s - shift_s) < 30, f"its clock does not jump: it is {off_s:.0f} s off")
        wait_until(lambda: _is_alive(target), "the host is alive after the jump", _KNOWN_S)

    try:
        yield jump
    finally:
        _shift(file, 0)


def _shift(file: Path, shift_s: int) -> None:
    """Writes in place: the service has the file mapped."""
    if not file.exists():
        file.touch()
    with file.open("r+b", buffering=0) as opened:
        opened.write(shift_s.to_bytes(8, "little", signed=True))


def _well(target: Target, tool_id: str) -> None:
    params = {"mode": "sleep", "seconds": 0} if tool_id == ATTACKER else {"message": "x"}
    began = time.monotonic()
    answered(target.call(tool_id, params), {200})
    health = target.ask("GET", "/health")
    expect(health.is_success, f"/health is not well: {health.text[:200]}")
    expect(time.monotonic() - began < 5, "a call had to wait")


def _is_alive(target: Target) -> bool:
    return all(host["is_alive"] for host in target.ask("GET", "/hosts").json()["hosts"])


def _keyed(target: Target, key: str) -> str:
    body = {"tool_id": ATTACKER, "params": {"mode": "sleep", "seconds": 0}}
    answer: httpx.Response = target.ask("POST", "/run_tool", json=body, headers={"Idempotency-Key": key})
    answered(answer, {200})
    return str((answer.json()["call_id"], answer.json()["executed_at"]))


KIND = Kind(
    "clocks",
    (
        Attack("in-calls", "the wall clock jumps +1 h, −2 h, +1 h while calls run", in_calls, is_load=True, in_ci=False),
        Attack("between", "the same between calls, which are made for longer than a host's lease", between, is_load=True, in_ci=False),
        Attack("again", "a call made again with its key after each jump", again, in_ci=False),
        Attack("swept", "a call of two minutes under the sweeps of a clock that jumps", swept, in_ci=False, has_middle=False),
    ),
    around=_on_a_clock_of_its_own,
)
