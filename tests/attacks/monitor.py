"""`python -m tests.attacks.monitor URL PID`: observes a service until stdin ends, then prints the observations as a line of JSON.

It is a separate process, because an attack keeps its own process busy.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil
from pydantic import BaseModel

from tests.programs import Program
from workers.settings.environment import environment

__all__ = ["Sample", "Seen", "Watch", "watching"]

ROOT = Path(__file__).parents[2]
HEALTH_EVERY_S = 0.25
_QUICK_EVERY_S = 0.05
_MEMORY_EVERY_S = 0.1
_PATIENCE_S = 300.0
_ECHO = {"tool_id": "echo", "params": {"message": "hello"}}


class Sample(BaseModel):
    """One look: when it began (the machine's monotonic clock), how many seconds it took, and whether it was answered with 200."""

    at: float
    took: float
    is_well: bool


class Seen(BaseModel):
    """`memory` has the time and the bytes of the service's Python process."""

    health: list[Sample] = []
    quick: list[Sample] = []
    memory: list[tuple[float, int]] = []


@dataclass
class Watch:
    """The observations; empty until the block of `watching` has ended."""

    seen: Seen = field(default_factory=Seen)


@contextmanager
def watching(url: str, pid: int) -> Generator[Watch]:
    """Runs a monitor during the block."""
    watch = Watch()
    child = Program(
        [sys.executable, "-m", "tests.attacks.monitor", url, str(pid)],
        cwd=ROOT,
        env={**environment(), "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert child.stdout is not None
        # Under load it takes seconds to begin.
        child.stdout.readline()
        yield watch
    finally:
        said, _ = child.communicate()
        # A monitor that has died saw nothing, and that holds for nothing.
        watch.seen = Seen.model_validate_json(said) if said.strip() else Seen()


class Monitor:
    """Three threads, each observing one thing."""

    def __init__(self, url: str, pid: int) -> None:
        self._url, self._pid = url, pid
        self._begun, self._ended = threading.Event(), threading.Event()
        self._seen = Seen()
        self._open: dict[str, float] = {}

    def run(self) -> Seen:
        for look in (self._health, self._quick, self._memory):
            threading.Thread(target=look, daemon=True).start()
        self._begun.wait(_PATIENCE_S)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.read()
        self._ended.set()
        now = time.monotonic()
        # What has not been answered yet has taken at least so long.
        for name, samples in (("health", self._seen.health), ("quick", self._seen.quick)):
            if began := self._open.get(name):
                samples.append(Sample(at=began, took=now - began, is_well=True))
        return self._seen

    def _health(self) -> None:
        self._ask("health", self._seen.health, HEALTH_EVERY_S, lambda http: http.get("/health"))

    def _quick(self) -> None:
        self._ask("quick", self._seen.quick, _QUICK_EVERY_S, lambda http: http.post("/run_tool", json=_ECHO))

    def _ask(self, name: str, samples: list[Sample], every_s: float, ask: Callable[[httpx.Client], httpx.Response]) -> None:
        with httpx.Client(base_url=self._url, timeout=_PATIENCE_S, trust_env=False) as http:
            while not self._ended.is_set():
                began = self._open[name] = time.monotonic()
                is_well = False
                with suppress(httpx.HTTPError):
                    is_well = ask(http).is_success
                took = time.monotonic() - began
                self._open.pop(name, None)
                samples.append(Sample(at=began, took=took, is_well=is_well))
                if self._seen.health and self._seen.quick:
                    self._begun.set()
                self._ended.wait(max(0.0, every_s - took) or 0.001)

    def _memory(self) -> None:
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(self._pid)
            while not self._ended.wait(_MEMORY_EVERY_S):
                self._seen.memory.append((time.monotonic(), process.memory_info().rss))


if __name__ == "__main__":
    sys.stdout.write(Monitor(sys.argv[1], int(sys.argv[2])).run().model_dump_json())
    sys.stdout.flush()
