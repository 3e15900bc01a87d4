"""Two front doors, processes of their own, on one PostgreSQL and one Temporal, beside one of them alone."""

import statistics
import sys
import time
from collections import abc
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
import psutil

from bench.generator import Generator
from bench.load import Job, Measured
from bench.postgres import Postgres, postgres_binaries
from bench.processes import Child, NotReadyError, cpu_seconds, is_free
from bench.results import Row
from bench.rounds import Measurements, Plan, median_row
from bench.service import HARMLESS, LANE_WAY, ROOT, call_body, make_catalog, python_path
from engine.network.ports import free_port
from workers.temporal.dev_server import read_config, server_command, temporal_binary

_CALLERS = 64
_START_S = 120.0
_TEMPORAL_CONFIG = ROOT / "temporal-dev.yaml"


class Doors:
    """`urls` are those of the doors; `parts` what runs, by what it is."""

    def __init__(self, urls: Sequence[str], parts: Mapping[str, Sequence[psutil.Process]]) -> None:
        self.urls, self.parts = urls, parts


def measure_doors(generator: Generator, folder: Path, plan: Plan) -> Measurements:
    """Rows `doors.one` and `doors.two`: echo, with as many callers in all. Raises NotReadyError, WrongAnswersError."""
    folder.mkdir()
    made = Measurements()
    with two_doors(folder) as doors, Generator(ROOT) as other:
        for number in range(plan.rounds):
            rows = [
                lambda: _row("doors.one", "one door on PostgreSQL: echo", doors, ((generator, doors.urls[0], _CALLERS),), plan),
                lambda: _row(
                    "doors.two",
                    "two doors on PostgreSQL: echo",
                    doors,
                    ((generator, doors.urls[0], _CALLERS // 2), (other, doors.urls[1], _CALLERS // 2)),
                    plan,
                ),
            ]
            made.rounds += [row() for row in rows[:: -1 if number % 2 else 1]]
    made.rows += [median_row(row for row in made.rounds if row.target == name) for name in ("doors.one", "doors.two")]
    return made


@contextmanager
def two_doors(folder: Path) -> abc.Generator[Doors]:
    """A host and two front doors beside it. Raises NotReadyError, also where PostgreSQL is not installed."""
    with ExitStack() as stack:
        postgres = _postgres(stack, folder)
        port = free_port()
        config = read_config(_TEMPORAL_CONFIG)
        (folder / "temporal").mkdir()
        command = server_command(temporal_binary(), config, folder / "temporal", port, free_port())
        temporal = Child(command, folder, "temporal-doors", config.environment)
        stack.callback(temporal.stop)
        temporal.ready(lambda: not is_free(port), _START_S)
        shared = {
            **HARMLESS,
            "TEMPORAL_ADDRESS": f"127.0.0.1:{port}",
            "TEMPORAL_CONFIG": str(_TEMPORAL_CONFIG),
            "DATABASE_URL": postgres.async_url("doors"),
            "CONTENT_STORE": "database",
            "DATA_DIR": str(make_catalog(folder / "data")),
        }
        host = _process(stack, folder, "worker", "host", shared)
        host.ready(lambda: "ready" in host.output, _START_S)
        ports = [free_port(), free_port()]
        doors = [
            _process(stack, folder, "api", f"door-{number}", {**shared, "FASTAPI_PORT": str(port)}) for number, port in enumerate(ports)
        ]
        urls = [f"http://127.0.0.1:{port}" for port in ports]
        for door, url in zip(doors, urls, strict=True):
            door.ready(lambda url=url: _is_healthy(url), _START_S)
        parts = {
            "doors": [process for door in doors for process in door.tree()],
            "host": host.tree(),
            "Temporal": temporal.tree(),
            "PostgreSQL": postgres.child.tree(),
        }
        yield Doors(urls, parts)


def _postgres(stack: ExitStack, folder: Path) -> Postgres:
    binaries = postgres_binaries()
    if binaries is None:
        raise NotReadyError("PostgreSQL is not installed, and two front doors need it.")
    folder.chmod(0o711)
    postgres = Postgres(binaries, folder / "postgres")
    stack.callback(postgres.child.stop)
    postgres.create("doors")
    return postgres


def _process(stack: ExitStack, folder: Path, kind: str, name: str, settings: Mapping[str, str]) -> Child:
    all_settings = {**settings, "STATE_DIR": str(folder / f"{name}-state")}
    more = {"PYTHONPATH": python_path(), "COLUMNS": "300"} | {f"TOOL_AGENT_{key}": value for key, value in all_settings.items()}
    child = Child([sys.executable, "-m", "workers", kind], folder, name, more)
    stack.callback(child.stop)
    return child


def _is_healthy(url: str) -> bool:
    with suppress(httpx.TransportError):
        return httpx.get(f"{url}/health", trust_env=False, timeout=10).is_success
    return False


def _row(name: str, label: str, doors: Doors, loads: Sequence[tuple[Generator, str, int]], plan: Plan) -> Row:
    """Each load by a generator of its own, all at once; after a warm-up."""
    _all_at_once(loads, plan.warm_up_s)
    before = {part: cpu_seconds(processes) for part, processes in doors.parts.items()}
    began = time.perf_counter()
    measured = _all_at_once(loads, plan.seconds)
    calls, seconds = sum(one.calls for one in measured), time.perf_counter() - began
    return Row(
        target=name,
        label=label,
        callers=_CALLERS,
        p50_ms=statistics.mean(one.p50_ms for one in measured),
        p99_ms=max(one.p99_ms for one in measured),
        per_second=calls / seconds,
        noted=sum(one.noted for one in measured) / calls,
        cpu_ms={part: (cpu_seconds(processes) - before[part]) * 1000 / calls for part, processes in doors.parts.items()},
    )


def _all_at_once(loads: Sequence[tuple[Generator, str, int]], seconds: float) -> list[Measured]:
    def run(load: tuple[Generator, str, int]) -> Measured:
        generator, url, callers = load
        job = Job(url=f"{url}/run_tool", body=call_body("echo"), expect='"success"', notes=LANE_WAY, callers=callers, seconds=seconds)
        return generator.run(job)

    with ThreadPoolExecutor(len(loads)) as threads:
        return [*threads.map(run, loads)]
