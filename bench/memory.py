"""What everything weighs: idle, and after many calls."""

import json
import time
from pathlib import Path

from bench.generator import Generator
from bench.load import Job
from bench.processes import resident_mib
from bench.results import Single
from bench.service import OurService, make_catalog

_CALLERS = 16


def measure_memory(generator: Generator, folder: Path, calls: int, rest_s: float) -> list[Single]:
    """MiB resident of a fresh `up` with all its processes: at rest for `rest_s` seconds, after `calls` / 2 and after `calls` calls."""
    service = OurService(folder / "memory", make_catalog(folder / "memory-data"))
    try:
        # It has to have come to rest: this is what the state is, not a wait for something.
        time.sleep(rest_s)
        singles = _weigh(service, "memory.idle", "idle")
        body = json.dumps({"tool_id": "echo", "params": {"message": "hello"}})
        for number, name in ((calls // 2, "memory.half"), (calls, "memory.full")):
            job = Job(url=f"{service.url}/run_tool", body=body, expect='"success"', callers=_CALLERS, calls=calls // 2)
            generator.run(job)
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
