"""Workflows that others start on Temporal with invalid input."""

import asyncio
import json
from datetime import timedelta

from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle, WorkflowQueryFailedError
from temporalio.service import RPCError

from tests.attacks.attack import Attack, Kind, Target, expect
from toolagent.client import names
from toolagent_service import step_names

__all__ = ["KIND"]

_WORKFLOWS = (
    names.INVOKE_TOOL,
    names.RUN_TOOLS,
    names.CONTROL_TOOL,
    names.CREATE_TOOL,
    names.REPAIR_TOOL,
    names.CODING_AGENT,
    names.DELIVER_CALLBACK_WORKFLOW,
)
_TEXTS = ('"text"', "null", "5", "[]", "{}", '{"tool_id": 7, "params": "x"}', "[[[[]]], [[[]]]]", '{"tool_id": "%s"}' % ("x" * 100_000))
_NONSENSE = tuple(json.loads(text) for text in _TEXTS)
_END_S = 20.0


def nonsense(target: Target) -> str:
    return asyncio.run(_all(target.service.temporal_address))


def no_input(target: Target) -> str:
    return asyncio.run(_without(target.service.temporal_address))


def signals(target: Target) -> str:
    """Unknown signals, updates and queries, and known ones with invalid content, to a running call."""
    return asyncio.run(_signalled(target))


async def _all(address: str) -> str:
    client = await Client.connect(address)
    started = [await _start(client, name, number, argument) for name in _WORKFLOWS for number, argument in enumerate(_NONSENSE)]
    return await _ended(started)


async def _without(address: str) -> str:
    client = await Client.connect(address)
    return await _ended([await client.start_workflow(name, id=f"none-{name}", task_queue=names.TASK_QUEUE) for name in _WORKFLOWS])


async def _start(client: Client, name: str, number: int, argument: object) -> WorkflowHandle[object, object]:
    return await client.start_workflow(name, argument, id=f"attack-{name}-{number}", task_queue=names.TASK_QUEUE)


async def _ended(started: list[WorkflowHandle[object, object]]) -> str:
    """Each workflow ends by itself, with an answer or a failure that says why, and is never retried for ever."""
    left = {handle.id: handle for handle in started}
    end = asyncio.get_running_loop().time() + _END_S
    while left and asyncio.get_running_loop().time() < end:
        for name, handle in list(left.items()):
            if (await handle.describe()).status is not WorkflowExecutionStatus.RUNNING:
                left.pop(name)
        await asyncio.sleep(0.2)
    for handle in left.values():
        await handle.terminate("the attack is over")
    kinds = sorted({name.split("-")[1] for name in left})
    expect(not left, f"{len(left)} of {len(started)} go on after {_END_S:g} s: {', '.join(kinds)}")
    return f"{len(started)} ended"


async def _signalled(target: Target) -> str:
    client = await Client.connect(target.service.temporal_address)
    answer = target.post("/run_tool", {"tool_id": "attack:script", "params": {"mode": "sleep", "seconds": 3}, "mode": "async"})
    handle = client.get_workflow_handle(answer.json()["task_id"])
    short = timedelta(seconds=3)
    for name in ("nobody", names.GUIDE, step_names.ATTEMPT_ENDED, names.PROGRESS):
        for argument in ("text", None, {"x": 1}):
            try:
                await handle.signal(name, argument, rpc_timeout=short)
                await handle.query(name, argument, rpc_timeout=short)
            except (RPCError, WorkflowQueryFailedError):
                # Whatever a client is told: what counts is that the call ends well.
                continue
    result = await asyncio.wait_for(handle.result(), _END_S)
    expect("success" in str(result), f"the call ended as {str(result)[:200]}")
    return "the call succeeds"


KIND = Kind(
    "starts",
    (
        Attack("nonsense", "every workflow started with eight kinds of nonsense", nonsense, is_load=True, in_ci=False),
        Attack("no-input", "every workflow started with nothing", no_input, in_ci=False),
        Attack("signals", "signals and queries that nobody knows, to a call that runs", signals, in_ci=False),
    ),
)
