"""What everything weighs: idle, and after many calls."""

import time
from pathlib import Path

from bench.generator import Generator
from bench.load import Job
from bench.processes import resident_mib
from bench.results import Single
from bench.service import HARMLESS, OurService, call_body, make_catalog

_CALLERS = 64
_SOME = 10


def measure_memory(generator: Generator, folder: Path, calls: int, rest_s: float) -> list[Single]:
    """MiB resident of a fresh `up` with all its processes: at rest for `rest_s` seconds, after a tenth of `calls` and after all."""
    service = OurService(folder / "memory", make_catalog(folder / "memory-data"), HARMLESS)
    try:
        # It has to have come to rest: this is what the state is, not a wait for something.
        time.sleep(rest_s)
        singles = _weigh(service, "memory.idle", "idle")
        done = 0
        for number, name in ((calls // _SOME, "memory.some"), (calls, "memory.full")):
            url, body = f"{service.url}/run_tool", call_body("echo")
            generator.run(Job(url=url, body=body, expect='"success"', callers=_CALLERS, calls=number - done))
            done = number
            singles += _weigh(service, name, f"after call {number:,}")
        return singles
    finally:
        service.stop()


def _weigh(service: OurService, name: str, label: str) -> list[Single]:
    parts = {part: resident_mib(processes) for part, processes in service.parts().items()}
    whole = Single(name=name, label=f"resident, everything, {label}", value=sum(parts.values()), unit="MiB")
    shares = [
        Single(name=f"{name}.{part}", label=f"of it {part}, {label}", value=value, unit="MiB") for part, value in parts.items() if value
    ]
    return [whole, *shares]
