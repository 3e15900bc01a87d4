"""A tool whose source is broken under traffic is repaired without a person.

`python -m tests.system.production_repair` prints the transcript in `docs/transcripts`.
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from http import HTTPStatus
from pathlib import Path

from pydantic import JsonValue

from engine.disk.temporary import temporary_folder
from tests.making.gate.conftest import INPUT, OUTPUT, RECKONER
from tests.making.gate.test_judging import EMPTY_MEAN
from tests.system.catalog import make_catalog
from tests.system.making_tasks import ended, evidence, serving
from tests.system.service_process import ServiceProcess
from tests.system.waiting import wait_until
from toolagent.contracts.calls import ToolResult
from toolagent.contracts.making_views import MakingTask

__all__ = ["BROKEN", "SCENARIO", "SETTINGS", "Traffic", "add_tools", "break_source", "broken_under_traffic"]

SCENARIO = "repaired_from_production"
SETTINGS = {"REPAIR_AFTER_FAILURES": "3", "HEALTH_CHECK_INTERVAL_S": "2", "CODING_ROUNDS": "2"}
BROKEN = ("total = sum(numbers)", 'total = sum(numbers) / len("")')
POISONED = ("total = sum(numbers)", "total = os._exit(3) if numbers == [0] else sum(numbers)")

_OPENED_S = 60.0
_REPAIRED_S = 240.0
_CALLED_S = 0.2

Say = Callable[[str], None]


class Traffic:
    """Calls of one tool, each with other numbers; `seen` are the answers."""

    def __init__(self, service: ServiceProcess, tool_id: str) -> None:
        self._service, self._tool_id = service, tool_id
        self._calls = 0
        self.seen: Counter[str] = Counter()

    def call(self, numbers: list[JsonValue] | None = None) -> tuple[int, ToolResult]:
        self._calls += 1
        params: Mapping[str, JsonValue] = {"numbers": numbers or [self._calls, 1], "operation": "sum"}
        answer = self._service.http.post("/run_tool", json={"tool_id": self._tool_id, "params": dict(params)})
        result = ToolResult.model_validate_json(answer.content)
        self.seen[f"{answer.status_code} {_told(result)}"] += 1
        return answer.status_code, result

    def until(self, is_so: Callable[[int, ToolResult], bool], what: str, bound_s: float) -> ToolResult:
        """Call again until the answer fulfils the condition."""

        def asked() -> ToolResult | None:
            status, result = self.call()
            return result if is_so(status, result) else None

        return wait_until(asked, what, bound_s, _CALLED_S)


def _told(result: ToolResult) -> str:
    if result.error is None:
        return f"version {result.metadata['version']}"
    details = result.error.details if isinstance(result.error.details, dict) else {}
    return " ".join(filter(None, (result.error.type.value, str(details.get("reason") or ""))))


def add_tools(data: Path) -> None:
    """Add tools to the catalog: `reckoner`, which works; `abacus`, whose process ends at the sum of [0]; and `teller`, which divides by
    zero at the mean of no numbers.
    """
    registry, sources = (json.loads((data / name).read_text("utf-8")) for name in ("registry.json", "sources.json"))
    for tool_id in ("reckoner", "abacus", "teller"):
        project = data / "projects" / tool_id
        project.mkdir()
        for name in ("main.py", "pyproject.toml", "requirements.lock"):
            (project / name).write_text((RECKONER / name).read_text("utf-8"), "utf-8")
        manifest = {"tool_id": tool_id, "name": "Reckoner", "side_effect_scope": "none", "tags": ["sums"], "timeout_s": 20}
        registry["tools"].append({**manifest, "input_schema": INPUT, "output_schema": OUTPUT})
        sources["sources"][tool_id] = [{"type": "local", "host_dir": f"projects/{tool_id}", "endpoint_path": "/run"}]
    break_source(data, "abacus", POISONED)
    break_source(data, "teller", EMPTY_MEAN)
    (data / "registry.json").write_text(json.dumps(registry), "utf-8")
    (data / "sources.json").write_text(json.dumps(sources), "utf-8")


def break_source(data: Path, tool_id: str, change: tuple[str, str]) -> None:
    main = data / "projects" / tool_id / "main.py"
    main.write_text(main.read_text("utf-8").replace(*change), "utf-8")


def broken_under_traffic(service: ServiceProcess, data: Path, say: Say = lambda _: None, *, killed: bool = False) -> MakingTask:
    """The repair that the service opened by itself, once calls succeed again. `killed`: the service is killed during the repair."""
    traffic = Traffic(service, "reckoner")
    for _ in range(3):
        traffic.call()
    say(f"calls: {_counted(traffic)}")
    break_source(data, "reckoner", BROKEN)
    say(f"main.py: {BROKEN[0]}  →  {BROKEN[1]}")
    refused = traffic.until(lambda status, _: status == HTTPStatus.SERVICE_UNAVAILABLE, "a repair is opened", _OPENED_S)
    assert refused.error is not None
    assert isinstance(refused.error.details, dict)
    task_id = str(refused.error.details["task_id"])
    say(f"calls: {_counted(traffic)}")
    say(f"the first 503: {refused.error.message}")
    if killed:
        service.kill()
        say("kill -9 of the service; it is started again")
        service.start()
        status, still = traffic.call()
        say(f"call: {status} {_told(still)}")
    traffic.seen.clear()
    again = traffic.until(lambda status, _: status == HTTPStatus.OK, "calls succeed again", _REPAIRED_S)
    say(f"calls: {_counted(traffic)}")
    made = ended(service, task_id)
    say(f"GET /tasks/{task_id}: {made.status.value}: {made.result}")
    say(f"asked for: {made.task_spec.error}" if made.task_spec.type == "repair_tool" else "")
    versions = evidence(service, "reckoner")
    say(f"versions: {', '.join(one.version for one in versions.versions)}; the active one is {versions.active_version}")
    assert again.metadata["version"] == versions.active_version
    return made


def _counted(traffic: Traffic) -> str:
    return "; ".join(f"{what} ×{times}" for what, times in traffic.seen.items())


def main() -> None:
    began = time.monotonic()

    def say(line: str) -> None:
        sys.stdout.write(f"{time.monotonic() - began:6.1f} s  {line}\n")
        sys.stdout.flush()

    with temporary_folder("production-repair-") as folder:
        data = make_catalog(folder)
        add_tools(data)
        with serving(folder, data, SCENARIO, **SETTINGS) as (service, _):
            began = time.monotonic()
            broken_under_traffic(service, data, say, killed=True)


if __name__ == "__main__":
    main()
