"""`python -m tests.workflows.record` plays every scenario on a server of its own and keeps the histories and their fingerprints.

Histories are recorded, never written by hand: one without `coreUsedFlags` replays without its check of command types.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from pydantic import JsonValue
from temporalio.client import Client, WorkflowHistory
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_fixed

from engine.runtimes.ports import free_port
from tests.workflows.fingerprints import fingerprint
from tests.workflows.scenarios import SCENARIOS, play
from toolagent.client.plugin import ToolAgentPlugin
from workers.dev_server import read_config, server_command, temporal_binary

__all__ = ["FINGERPRINTS", "FOLDER", "IDENTITY", "stored"]

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent / "histories"
FINGERPRINTS = Path(__file__).parent / "histories-fingerprints.json"
IDENTITY = "recorder"
"""Of client and workers; else every event would name this machine."""


def stored() -> dict[str, WorkflowHistory]:
    """The recorded histories by the scenarios' names."""
    return {path.stem: _read(path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.json"))}


def _read(text: str) -> WorkflowHistory:
    """Under the id it ran under: a workflow may derive others from it."""
    started: dict[str, str] = json.loads(text)["events"][0]["workflowExecutionStartedEventAttributes"]
    return WorkflowHistory.from_json(started["workflowId"], text)


def record() -> None:
    config = read_config(ROOT / "temporal-dev.yaml")
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        command = server_command(temporal_binary(), config, Path(folder), port, free_port())
        with (Path(folder) / "server.log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as server:
            try:
                _keep(asyncio.run(_played(f"127.0.0.1:{port}", config.namespace)))
            finally:
                server.terminate()


async def _played(address: str, namespace: str) -> dict[str, WorkflowHistory]:
    return await play(await _connect(address, namespace), SCENARIOS)


async def _connect(address: str, namespace: str) -> Client:
    async for attempt in AsyncRetrying(retry=retry_if_exception_type(RuntimeError), stop=stop_after_delay(60), wait=wait_fixed(0.1)):
        with attempt:
            return await Client.connect(address, namespace=namespace, identity=IDENTITY, plugins=[ToolAgentPlugin()])
    raise AssertionError("tenacity ended without an outcome")


def _keep(histories: dict[str, WorkflowHistory]) -> None:
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.json"):
        path.unlink()
    for name, history in histories.items():
        text = json.dumps(_without_places(json.loads(history.to_json())), indent=1, ensure_ascii=False)
        (FOLDER / f"{name}.json").write_text(text + "\n", "utf-8")
    found = {name: fingerprint(history) for name, history in sorted(histories.items())}
    FINGERPRINTS.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


def _without_places(value: JsonValue) -> JsonValue:
    """Stack traces name files of this machine; no workflow looks at them."""
    match value:
        case dict():
            return {key: "" if key == "stackTrace" else _without_places(inner) for key, inner in value.items()}
        case list():
            return [_without_places(inner) for inner in value]
        case _:
            return value


if __name__ == "__main__":
    record()
    sys.stdout.write(f"Written: {len(SCENARIOS)} histories in {FOLDER.relative_to(ROOT)}, and {FINGERPRINTS.relative_to(ROOT)}\n")
