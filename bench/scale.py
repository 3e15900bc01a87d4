"""Echo of services that know few tools and no calls, and many of both, once what follows a start is done."""

import json
import sqlite3
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.generator import Generator
from bench.results import Single
from bench.rounds import Measurements, Plan, Target, measure
from bench.service import HARMLESS, LANE_WAY, OurService, call_body, make_catalog

_FEW = 17
"""The built-in, the shipped and the bench's own tools."""

_MODELS = 20
"""So many calls are made for real; the records are copies of theirs."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """What `many` means."""

    tools: int
    records: int


def measure_scale(generator: Generator, folder: Path, plan: Plan, sizes: Sizes) -> tuple[Measurements, list[Single]]:
    """Rows `scale.few` and `scale.many`, and how long each service took to start."""
    few, many = make_catalog(folder / "catalog-few"), make_catalog(folder / "catalog-many", sizes.tools - _FEW)
    kinds = {"few": (few, 0), "many": (many, sizes.records)}
    targets: list[Target] = []
    singles: list[Single] = []
    with ExitStack() as stack:
        for kind, (catalog, records) in kinds.items():
            service, start_s = _service(folder / kind, catalog, records)
            stack.callback(service.stop)
            service.rest()
            tools = len(service.http.get("/tools").raise_for_status().json()["tools"])
            label = f"ours: echo with {tools:,} tools and {records:,} records"
            parts = service.parts()
            cpu = {"our Python": parts["python"], "Temporal": parts["temporal"]}
            targets.append(Target(f"scale.{kind}", label, f"{service.url}/run_tool", call_body("echo"), cpu, '"success"', notes=LANE_WAY))
            singles.append(Single(name=f"scale.{kind}.start", label=label.replace("echo", "last start"), value=start_s, unit="s"))
        return measure(generator, targets, plan), singles


def _service(folder: Path, catalog: Path, records: int) -> tuple[OurService, float]:
    """Running, and how many seconds its last start took."""
    begin = time.perf_counter()
    service = OurService(folder, catalog, HARMLESS)
    if not records:
        return service, time.perf_counter() - begin
    try:
        for number in range(_MODELS):
            service.call("echo", message=f"A message of some length, as people write them, number {number}.")
    finally:
        service.stop()
    copy_records(folder / "state/tool-agent.db", records)
    begin = time.perf_counter()
    return OurService(folder, catalog, HARMLESS), time.perf_counter() - begin


def copy_records(database: Path, records: int) -> None:
    """Have that many call records, copies of those that are there under other ids, with their events."""
    with sqlite3.connect(database, isolation_level=None) as connection:
        connection.execute("PRAGMA synchronous=OFF")
        models = [str(row[0]) for row in connection.execute("SELECT call_id FROM calls ORDER BY call_id")]
        connection.execute("BEGIN")
        connection.execute("CREATE TEMP TABLE copies (model TEXT, call_id TEXT PRIMARY KEY)")
        connection.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
            "INSERT INTO copies SELECT json_extract(?, '$[' || (i % ?) || ']'), 'call-' || lower(hex(randomblob(16))) FROM n",
            (records, json.dumps(models), len(models)),
        )
        for table in ("calls", "events"):
            _copy(connection, table)
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def _copy(connection: sqlite3.Connection, table: str) -> None:
    """Each column as it is, but for ids: what holds the model's id holds the copy's."""
    names = [str(row[1]) for row in connection.execute(f"PRAGMA table_info({table})")]
    ids = {"call_id", "event_id", "workflow_id"}
    columns = [f"replace(one.{name}, copies.model, copies.call_id)" if name in ids else f"one.{name}" for name in names]
    chosen = f"SELECT {', '.join(columns)} FROM copies JOIN {table} AS one ON one.call_id = copies.model"  # noqa: S608 - names of our tables
    connection.execute(f"INSERT INTO {table} ({', '.join(names)}) {chosen}")
