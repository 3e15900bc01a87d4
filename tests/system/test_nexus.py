"""Agents on another namespace: calls by Nexus, cancellations, and `kill -9` meanwhile."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from google.protobuf.duration_pb2 import Duration
from pydantic import JsonValue
from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import CancelledError
from temporalio.worker import Worker

from engine.network.ports import free_port
from tests.system.effects import count_of, own_effects, wait_for_effect
from tests.system.far_agents import FarAsks, FarCalls, NearMakes
from tests.system.service_process import ROOT, ServiceProcess
from toolagent.client.plugin import ToolAgentPlugin
from toolagent.contracts.call_messages import Listener
from toolagent.contracts.calls import Caller, ErrorType, ToolCall, ToolResult
from toolagent.contracts.task_specs import BuildTool
from toolagent.contracts.tasks import TaskState

pytestmark = pytest.mark.timeout(300)

EXAMPLE = ROOT / "docs/examples/nexus"
FAR = "far"


@pytest.fixture(scope="module")
def near(catalog: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[ServiceProcess]:
    """A service whose Temporal server keeps its port after a restart."""
    service = ServiceProcess(tmp_path_factory.mktemp("near"), catalog, TEMPORAL_PORT=str(free_port()))
    service.start()
    yield service
    service.end()
    service.wait_until_nothing_is_left()


@asynccontextmanager
async def far_agent(near: ServiceProcess) -> AsyncGenerator[Client]:
    """A client with a worker on its own namespace."""
    client = await Client.connect(near.temporal_address, namespace=f"{FAR}-{uuid4().hex[:8]}", plugins=[ToolAgentPlugin()])
    kept = Duration(seconds=int(timedelta(days=1).total_seconds()))
    request = RegisterNamespaceRequest(namespace=client.namespace, workflow_execution_retention_period=kept)
    await client.workflow_service.register_namespace(request)
    async with Worker(client, task_queue=FAR, workflows=[FarCalls, FarAsks]):
        yield client


async def begun(client: Client, *calls: ToolCall) -> WorkflowHandle[Any, list[ToolResult]]:
    return await client.start_workflow(FarCalls.run, [*calls], id=uuid4().hex, task_queue=FAR, execution_timeout=timedelta(minutes=2))


async def asked(client: Client, operation: str, given: JsonValue) -> Any:
    limit = timedelta(minutes=2)
    return await client.execute_workflow(FarAsks.run, args=[operation, given], id=uuid4().hex, task_queue=FAR, execution_timeout=limit)


def acting(tool_id: str, effects: Path, **more: Any) -> ToolCall:
    return ToolCall(tool_id=tool_id, params={"effects": str(effects), "until": str(effects.with_name("go on")), "line": tool_id}, **more)


async def test_the_operations_answer_and_refuse(near: ServiceProcess) -> None:
    async with far_agent(near) as client:
        manifest = await asked(client, "get_tool", {"tool_id": "calculator"})
        found = await asked(client, "search_tools", {"keyword": "calculator", "limit": 1})
        batch = await asked(client, "run_tools", {"calls": [{"tool_id": "echo", "params": {"message": "a"}}, {"tool_id": "nowhere"}]})
        made = await asked(client, "create_tool", {"spec": {"type": "build_tool", "tool_name": "far_made", "description": "Count words."}})
        refused = [
            await asked(client, "get_tool", {"tool_id": "calculater"}),
            await asked(client, "get_tool", {"tool_id": "No Id"}),
            await asked(client, "run_tool", {"params": {}}),
            await asked(client, "create_tool", {"spec": {"type": "github_deploy", "tool_name": "a", "repo_url": "https://me:pw@host/x"}}),
        ]
    assert (manifest["tool_id"], [tool["tool_id"] for tool in found["tools"]]) == ("calculator", ["calculator"])
    assert [call["state"] for call in batch["calls"]] == ["success", "error"]
    assert (made["status"], near.http.get(f"/tasks/{made['task_id']}").json()["status"]) == ("failed", "failed")
    assert [one.get("refused") for one in refused] == ["NOT_FOUND", "BAD_REQUEST", "BAD_REQUEST", "BAD_REQUEST"]
    assert ("Did you mean calculator?" in refused[0]["message"], "pw" in refused[3]["message"]) == (True, False)


async def test_a_key_makes_one_task_of_two_and_refuses_another(near: ServiceProcess) -> None:
    spec: dict[str, JsonValue] = {"type": "build_tool", "tool_name": "far_keyed", "description": "Count words."}
    request: dict[str, JsonValue] = {"spec": spec, "idempotency_key": uuid4().hex}
    async with far_agent(near) as client:
        first, again = [await asked(client, "create_tool", request) for _ in range(2)]
        other = await asked(client, "create_tool", {**request, "spec": {**spec, "description": "Count letters."}})
    assert first == again
    assert (first["status"], other["task_id"], "another request" in other["reason"]) == ("failed", "", True)


async def test_a_workflow_beside_the_service_has_a_tool_made_as_its_child(near: ServiceProcess) -> None:
    client = await Client.connect(near.temporal_address, plugins=[ToolAgentPlugin()])
    async with Worker(client, task_queue="near", workflows=[NearMakes]):
        spec = BuildTool(tool_name="near_made", description="Count words.")
        end = await client.execute_workflow(NearMakes.run, spec, id=uuid4().hex, task_queue="near", execution_timeout=timedelta(minutes=2))
    task = near.http.get(f"/tasks/{end.task_id}").json()
    assert (end.status, task["status"], task["description"], bool(end.reason)) == (TaskState.FAILED, "failed", "Count words.", True)


@pytest.mark.promise("a-key-is-one-call")
async def test_a_key_makes_one_call_of_two_and_refuses_another(near: ServiceProcess, effects: Path) -> None:
    key, caller = uuid4().hex, Caller(caller_id="far")
    effects.with_name("go on").touch()
    call = acting("once", effects, idempotency_key=key, caller=caller)
    async with far_agent(near) as client:
        both = await (await begun(client, call, call)).result()
        (after,) = await (await begun(client, call)).result()
        (other,) = await (await begun(client, ToolCall(tool_id="echo", idempotency_key=key, caller=caller))).result()
    assert [result.status for result in (*both, after)] == ["success"] * 3
    assert ({result.call_id for result in (*both, after)}, count_of(effects, "once")) == ({both[0].call_id}, 1)
    assert other.error is not None
    assert other.error.details == {"reason": "idempotency_conflict"}


@pytest.mark.promise("one-pipeline")
async def test_a_call_that_a_front_door_has_made_is_not_made_again(near: ServiceProcess) -> None:
    body: dict[str, JsonValue] = {
        "tool_id": "echo",
        "params": {"message": "once"},
        "idempotency_key": uuid4().hex,
        "caller": {"caller_id": "far"},
    }
    first = ToolResult.model_validate_json(near.http.post("/run_tool", json=body).content)
    async with far_agent(near) as client:
        (second,) = await (await begun(client, ToolCall.model_validate(body))).result()
    assert (second.call_id, second.executed_at, second.result) == (first.call_id, first.executed_at, first.result)


async def test_cancelling_the_agent_cancels_the_call(near: ServiceProcess, effects: Path) -> None:
    async with far_agent(near) as client:
        listens = Listener(answers=("elicitation",))
        handle = await begun(client, acting("once", effects, caller=Caller(caller_id="far-cancelled"), listens=listens))
        await asyncio.to_thread(wait_for_effect, effects, "once")
        await handle.cancel()
        with pytest.raises(WorkflowFailureError) as failure:
            await handle.result()
    assert isinstance(failure.value.cause, CancelledError)
    calls = await near_calls(near, "far-cancelled")
    assert [near.task(call_id).status for call_id in calls] == [TaskState.CANCELLED]
    near_client = await Client.connect(near.temporal_address, plugins=[ToolAgentPlugin()])
    async for event in near_client.get_workflow_handle(calls[0]).fetch_history_events():
        if event.HasField("workflow_execution_started_event_attributes"):
            told = json.loads(event.workflow_execution_started_event_attributes.input.payloads[0].data)
            assert (told["tool_id"], told.get("listens")) == ("once", None)


@pytest.mark.promise("accepted-means-ended")
async def test_a_kill_in_the_middle_leaves_one_result_for_each_call(near: ServiceProcess, catalog: Path) -> None:
    effects = own_effects(catalog)
    async with far_agent(near) as client:
        handle = await begun(client, acting("again", effects), acting("once", effects), ToolCall(tool_id="nowhere"))
        await asyncio.to_thread(killed_and_started, near, effects)
        again, once, nowhere = await handle.result()
    assert (again.status, nowhere.error_type) == ("success", ErrorType.TOOL_NOT_FOUND)
    assert once.error is not None
    assert isinstance(once.error.details, dict)
    assert (once.error.details["outcome"], count_of(effects, "once")) == ("unknown", 1)


def test_the_example_prints_what_its_readme_says(near: ServiceProcess) -> None:
    command = [sys.executable, "main.py", near.temporal_address]
    ran = subprocess.run(command, cwd=EXAMPLE, check=False, capture_output=True, text=True, timeout=120)
    expected = (EXAMPLE / "README.md").read_text("utf-8").partition("It prints:")[2]
    assert ran.stdout.strip() == "\n".join(re.findall(r"^\w+: .*$", expected, re.MULTILINE)), ran.stderr


def killed_and_started(near: ServiceProcess, effects: Path) -> None:
    for line in ("again", "once"):
        wait_for_effect(effects, line)
    near.kill()
    effects.with_name("go on").touch()
    near.start()


async def near_calls(near: ServiceProcess, caller_id: str) -> list[str]:
    client = await Client.connect(near.temporal_address, plugins=[ToolAgentPlugin()])
    return [one.id async for one in client.list_workflows(f"Caller = '{caller_id}'")]
