"""What looking after running tools costs the worker: rounds every few seconds over many tools, and none."""

import json
import time
from pathlib import Path

import psutil
from pydantic import JsonValue

from bench.processes import NotReadyError, until
from bench.results import Single
from bench.service import OurService, make_catalog

_EVERY_S = 5
_NEVER_S = 86_400
_REGISTERED = 1_000
_START_S = 900.0


def measure_keeping(folder: Path, tools: int, seconds: float) -> list[Single]:
    """CPU seconds a minute of the worker's process, by its own clock, with so many running tools that nobody calls."""
    data = make_catalog(folder / "keeping-data", more=_REGISTERED - tools)
    _add_kept(data, tools)
    singles: list[Single] = []
    for name, every_s in (("rounds", _EVERY_S), ("none", _NEVER_S)):
        settings = {"HEALTH_CHECK_INTERVAL_S": str(every_s), "HOT_TOOL_MAX_CONTAINERS": str(tools)}
        service = OurService(folder / f"keeping-{name}", data, settings)
        try:
            if not until(lambda service=service: _running(service) == tools, _START_S):
                raise NotReadyError(f"{_running(service)} of {tools} tools were started")
            used = _cpu_a_minute(psutil.Process(service.child.pid), seconds)
        finally:
            service.stop()
        what = f"rounds every {every_s} s" if name == "rounds" else "without rounds"
        label = f"worker with {_REGISTERED:,} tools, {tools} of them running, {what}: CPU a minute"
        singles.append(Single(name=f"keeping.{name}", label=label, value=used, unit="s"))
    return singles


def _cpu_a_minute(process: psutil.Process, seconds: float) -> float:
    before, begin = process.cpu_times(), time.monotonic()
    # What is measured is a state, not something that happens.
    time.sleep(seconds)
    after, took = process.cpu_times(), time.monotonic() - begin
    return (after.user + after.system - before.user - before.system) * 60 / took


def _running(service: OurService) -> int:
    states: list[dict[str, JsonValue]] = service.http.get("/tools/status").raise_for_status().json()["tools"]
    return sum(one["state"] == "running" for one in states)


def _add_kept(data: Path, tools: int) -> None:
    registry = json.loads((data / "registry.json").read_text("utf-8"))
    sources = json.loads((data / "sources.json").read_text("utf-8"))
    for number in range(tools):
        tool_id = f"kept_{number:02}"
        registry["tools"].append({"tool_id": tool_id, "name": tool_id, "backend_runtime": "local", "scheduling_mode": "hot"})
        sources["sources"][tool_id] = [{"type": "local", "host_dir": "bench_tool", "endpoint_path": "/say"}]
    (data / "registry.json").write_text(json.dumps(registry), "utf-8")
    (data / "sources.json").write_text(json.dumps(sources), "utf-8")
