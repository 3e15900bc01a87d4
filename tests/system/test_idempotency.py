"""Requests with the same key are one call: concurrently, after the end, and after Temporal has forgotten it."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import JsonValue
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from tests.system.effects import count_of, own_effects
from tests.system.service_process import ServiceProcess, run_tool
from toolagent.contracts.calls import ErrorType, ToolResult
from toolagent.contracts.tasks import TaskState
from toolagent.core.calls.results import IDEMPOTENCY_CONFLICT, reason_of

pytestmark = pytest.mark.timeout(240)

_FORGET_S = 120


def _conflict(answer: tuple[int, ToolResult]) -> tuple[int, ErrorType | None, str | None]:
    return answer[0], answer[1].error_type, reason_of(answer[1])


_CONFLICT = (409, ErrorType.REJECTED, IDEMPOTENCY_CONFLICT)


@pytest.mark.promise("a-key-is-one-call")
def test_a_key_twice_at_once_and_after_the_end_is_one_effect_and_one_result(service: ServiceProcess, effects: Path) -> None:
    params, key = {"effects": str(effects), "seconds": 1}, "at-once"
    with ThreadPoolExecutor(2) as callers:
        begun = [callers.submit(run_tool, service.http, "once", params, key) for _ in range(2)]
        first, second = (call.result(60) for call in begun)
    after = run_tool(service.http, "once", params, key)
    assert first[0] == 200
    assert first == second == after
    assert count_of(effects) == 1


@dataclass(frozen=True, slots=True)
class Forgotten:
    """A call that only its record remembers, and its answer."""

    tool_id: str
    params: dict[str, JsonValue]
    key: str
    answer: tuple[int, ToolResult]


@pytest.fixture(scope="module")
def forgotten(service: ServiceProcess, catalog: Path) -> dict[str, Forgotten]:
    """Forgotten calls by tool, and some more with a prefix. They are deleted together, because Temporal may take half a minute."""
    calls: dict[str, Forgotten] = {}
    for name in ("once", "again", "other once", "other again", "spoiled once"):
        params: dict[str, JsonValue] = {"effects": str(own_effects(catalog))}
        tool_id, key = name.split()[-1], f"forgotten {name}"
        calls[name] = Forgotten(tool_id, params, key, run_tool(service.http, tool_id, params, key))
    asyncio.run(_forget(service.temporal_address, [call.answer[1].call_id for call in calls.values()]))
    return calls


async def _forget(address: str, call_ids: list[str]) -> None:
    """Have Temporal delete the workflows of the calls, as at the end of the retention."""
    client = await Client.connect(address)
    for call_id in call_ids:
        if not await _is_known(client, call_id):
            continue  # it was made in a lane
        request = DeleteWorkflowExecutionRequest(namespace=client.namespace, workflow_execution=WorkflowExecution(workflow_id=call_id))
        await client.workflow_service.delete_workflow_execution(request)
    async with asyncio.timeout(_FORGET_S):
        while any([await _is_known(client, call_id) for call_id in call_ids]):  # noqa: ASYNC110 - it happens in another process
            await asyncio.sleep(0.1)


async def _is_known(client: Client, call_id: str) -> bool:
    try:
        await client.get_workflow_handle(call_id).describe()
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return False
        raise
    return True


@pytest.mark.long
@pytest.mark.parametrize("tool_id", ["once", "again"])
@pytest.mark.promise("a-key-outlives-temporal")
def test_when_temporal_has_forgotten_a_call_its_record_answers(
    service: ServiceProcess, forgotten: dict[str, Forgotten], tool_id: str
) -> None:
    call = forgotten[tool_id]
    assert count_of(Path(str(call.params["effects"]))) == 1


def test_when_temporal_has_forgotten_a_call_its_task_is_still_there(service: ServiceProcess, forgotten: dict[str, Forgotten]) -> None:
    answered = forgotten["once"].answer[1]
    task = service.task(answered.call_id)
    assert (task.status, task.result) == (TaskState.COMPLETED, answered)


@pytest.mark.parametrize("tool_id", ["once", "again"])
@pytest.mark.promise("a-key-outlives-temporal")
def test_when_temporal_has_forgotten_a_call_its_key_still_stands_for_it(
    service: ServiceProcess, forgotten: dict[str, Forgotten], tool_id: str
) -> None:
    call = forgotten[f"other {tool_id}"]
    assert _conflict(run_tool(service.http, call.tool_id, {**call.params, "line": "other"}, call.key)) == _CONFLICT
    assert count_of(Path(str(call.params["effects"])), "other") == 0


def test_a_refused_call_does_not_take_the_key_from_the_one_it_belongs_to(service: ServiceProcess, forgotten: dict[str, Forgotten]) -> None:
    call = forgotten["spoiled once"]
    assert _conflict(run_tool(service.http, call.tool_id, {**call.params, "line": "other"}, call.key)) == _CONFLICT
    assert run_tool(service.http, call.tool_id, call.params, call.key) == call.answer
    assert service.task(call.answer[1].call_id).result == call.answer[1]
