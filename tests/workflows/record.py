"""`python -m tests.workflows.record` plays every scenario on a server of its own, and keeps the histories and their fingerprints.

With words behind it, those whose names begin with one of them.

A recorded history whose commands are the same stays, because the replay of an old one shows more. To record one again, delete its file.
Histories are recorded, never written by hand: without `coreUsedFlags` a replay does not check the types of commands.
"""

import asyncio
import json
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue
from temporalio.client import Client, WorkflowHistory
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_fixed

from engine.network.ports import free_port
from tests.programs import Program
from tests.workflows.fingerprints import fingerprint
from tests.workflows.scenarios import SCENARIOS, Scenario, play
from toolagent_service.plugin import service_plugin
from workers.temporal.dev_server import read_config, server_command, temporal_binary

__all__ = ["BEFORE", "FINGERPRINTS", "FOLDER", "IDENTITY", "keep", "stored", "with_unplayed"]

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent / "histories"
BEFORE = Path(__file__).parent / "histories-before"
"""Of workflows as they were before a patch: tasks that are under way during an update go on as these do."""
FINGERPRINTS = Path(__file__).parent / "histories-fingerprints.json"
IDENTITY = "recorder"
"""Of client and workers; else every event would name this machine."""


def stored(folder: Path = FOLDER) -> dict[str, WorkflowHistory]:
    """The recorded histories by the scenarios' names."""
    return {path.stem: _read(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))}


def _read(text: str) -> WorkflowHistory:
    """With its original workflow id, from which a workflow may derive others."""
    started: dict[str, str] = json.loads(text)["events"][0]["workflowExecutionStartedEventAttributes"]
    return WorkflowHistory.from_json(started["workflowId"], text)


def record(scenarios: Sequence[Scenario]) -> Sequence[str]:
    config = read_config(ROOT / "temporal-dev.yaml")
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        command = server_command(temporal_binary(), config, Path(folder), port, free_port())
        with (Path(folder) / "server.log").open("wb") as log, Program(command, stdout=log, stderr=log) as server:
            try:
                played = asyncio.run(_played(f"127.0.0.1:{port}", config.namespace, scenarios))
                return keep(with_unplayed(played, stored(), {scenario.name for scenario in SCENARIOS}), FOLDER, FINGERPRINTS)
            finally:
                server.terminate()


async def _played(address: str, namespace: str, scenarios: Sequence[Scenario]) -> dict[str, WorkflowHistory]:
    return await play(await _connect(address, namespace), scenarios)


async def _connect(address: str, namespace: str) -> Client:
    async for attempt in AsyncRetrying(retry=retry_if_exception_type(RuntimeError), stop=stop_after_delay(60), wait=wait_fixed(0.1)):
        with attempt:
            return await Client.connect(address, namespace=namespace, identity=IDENTITY, plugins=[service_plugin()])
    raise AssertionError("tenacity ended without an outcome")


def with_unplayed(
    played: Mapping[str, WorkflowHistory], recorded: Mapping[str, WorkflowHistory], scenarios: Collection[str]
) -> Mapping[str, WorkflowHistory]:
    """Scenarios that were not played stay as they were recorded."""
    return {**{name: history for name, history in recorded.items() if name in scenarios}, **played}


def keep(histories: Mapping[str, WorkflowHistory], folder: Path, fingerprints: Path) -> Sequence[str]:
    """Write histories whose commands have changed, and delete those without a scenario. Returns the names of the written ones."""
    folder.mkdir(exist_ok=True)
    known = {name: fingerprint(history) for name, history in stored(folder).items()}
    found = {name: fingerprint(history) for name, history in sorted(histories.items())}
    for name in known.keys() - found.keys():
        (folder / f"{name}.json").unlink()
    written = [name for name, commands in found.items() if known.get(name) != commands]
    for name in written:
        text = json.dumps(_without_places(json.loads(histories[name].to_json())), indent=1, ensure_ascii=False)
        (folder / f"{name}.json").write_text(text + "\n", "utf-8")
    fingerprints.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    return written


def _without_places(value: JsonValue) -> JsonValue:
    """Without stack traces, which name files of this machine; no workflow reads them."""
    match value:
        case dict():
            return {key: "" if key == "stackTrace" else _without_places(inner) for key, inner in value.items()}
        case list():
            return [_without_places(inner) for inner in value]
        case _:
            return value


if __name__ == "__main__":
    beginnings = (*sys.argv[1:],) or ("",)
    chosen = [scenario for scenario in SCENARIOS if scenario.name.startswith(beginnings)]
    if not chosen:
        there = ", ".join(sorted({scenario.workflow for scenario in SCENARIOS}))
        sys.exit(f"No path begins with {' or '.join(beginnings)}. There are: {there}.")
    anew = record(chosen)
    sys.stdout.write(f"Played {len(chosen)}; written in {FOLDER.relative_to(ROOT)}: {', '.join(anew) or 'none'}\n")
