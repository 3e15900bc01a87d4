"""Concurrent sessions under random faults of the provider: each launched server is stopped, and no launch is repeated."""

import asyncio
import base64
import random
from pathlib import Path

import pytest
from pydantic import JsonValue

from engine.runtimes.builtin.runcomfy.execute import Arguments as ToExecute
from engine.runtimes.builtin.runcomfy.execute import Execute
from engine.runtimes.builtin.runcomfy.launch import Arguments, Launch
from engine.runtimes.failures import CallFailed
from tests.runcomfy.conftest import SAVED, Tools, tools_of
from toolagent.testing.servers.runcomfy_ledger import Fault
from toolagent.testing.servers.runcomfy_server import RunComfyServer

SESSIONS, AT_ONCE = 40, 8
FAULTS = (
    *(Fault(kind="500", at=at) for at in ("launch", "status", "stop", "list", "history", "prompt")),
    *(Fault(kind="garbage", at=at) for at in ("launch", "status", "stop", "list", "history")),
    *(Fault(kind="lost_answer", at=at, times=2) for at in ("launch", "stop", "prompt")),
    *(Fault(kind=kind) for kind in ("402", "429", "fails_to_start", "never_ready", "vanish", "ws_drop", "forget", "run_error")),
)


@pytest.mark.parametrize("seed", [1, 2])
async def test_what_was_launched_was_stopped(seed: int, tmp_path: Path) -> None:
    chosen = random.Random(seed)  # noqa: S311 - which faults happen
    with RunComfyServer(start_s=0.02, node_s=0.01) as server:
        tools = tools_of(server, tmp_path)
        launch, execute, places = Launch(tools.service), Execute(tools.service), asyncio.Semaphore(AT_ONCE)

        async def one(number: int) -> bool:
            async with places:
                server.fail(chosen.choice(FAULTS))
                return await session(tools, launch, execute, f"call-{seed}-{number}")

        was_launched = await asyncio.gather(*map(one, range(SESSIONS)))
        ledger = server.ledger()
    assert sum(was_launched) > SESSIONS / 3
    assert ledger["running"] == []
    ended = [ledger[name] for name in ("stopped", "vanished")]
    assert ledger["launched"] == sum(count for count in ended if isinstance(count, int))


async def session(tools: Tools, launch: Launch, execute: Execute, call_id: str) -> bool:
    """Launch, run, and stop until it is confirmed. Returns whether there was a server."""
    images: list[JsonValue] = [{"name": "input.png", "base64": base64.b64encode(call_id.encode()).decode()}]
    try:
        launched = await launch.run(Arguments(), tools.context(call_id, timeout_s=2.0))
    except CallFailed:
        return False
    try:
        arguments = ToExecute.model_validate({"server_id": launched.server_id, "workflow": SAVED, "images": images})
        await execute.run(arguments, tools.context(call_id))
    except CallFailed:
        pass  # the stop comes all the same
    async with asyncio.timeout(60):
        while not await stopped(tools, launched.server_id):  # noqa: ASYNC110 - the provider is asked again
            await asyncio.sleep(0.02)
    return True


async def stopped(tools: Tools, server_id: str) -> bool:
    try:
        return (await tools.stop(server_id)).stopped
    except CallFailed:
        return False
