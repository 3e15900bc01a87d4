"""The report of a sub-agent about its calls."""

import asyncio
from datetime import UTC, datetime

import pytest

from toolagent.client.sub_agent import ToolSubAgent
from toolagent.contracts.calls import ErrorType, ToolCall, ToolError, ToolResult
from toolagent.core.calls.results import failed
from toolagent.testing.fake_client import FakeToolAgentClient, echo

BROKEN = ToolError(type=ErrorType.EXECUTION_ERROR, message="broken")


def scripted(call: ToolCall, call_id: str) -> ToolResult:
    return failed(call_id, call.tool_id, BROKEN, datetime.now(UTC)) if call.tool_id == "breaker" else echo(call, call_id)


async def test_the_summary_counts_every_call_in_the_form_of_the_specification() -> None:
    client = FakeToolAgentClient(script=scripted)
    sub_agent = ToolSubAgent("sub_001", client, parent_agent_id="parent_001")
    first = await sub_agent.execute("echo", {"message": "hello"}, timeout=30)
    results = await sub_agent.execute_batch([("breaker", {}), ("echo", {"message": "b"}), ("calculator", {})], ordered=True)
    assert [one.status for one in results] == ["error", "success", "success"]
    summary = sub_agent.get_execution_summary()
    details = summary.pop("call_details")
    assert summary == {
        "agent_id": "sub_001",
        "total_calls": 4,
        "successful_calls": 3,
        "success_rate": 75.0,
        "tool_usage": {"echo": 2, "breaker": 1, "calculator": 1},
    }
    assert isinstance(details, list)
    assert details[0] == {
        "call_id": first.call_id,
        "tool_name": "echo",
        "status": "success",
        "error_type": None,
        "execution_time": 0.0,
        "executed_at": first.executed_at.isoformat(),
        "callback_error": None,
    }
    assert sub_agent.get_brief_summary() == {
        "total_calls": 4,
        "success_rate": 75.0,
        "tool_usage": {"echo": 2, "breaker": 1, "calculator": 1},
        "has_errors": True,
    }
    assert {(call.caller.caller_id, call.caller.caller_type) for call in client.calls.values()} == {("parent_001", "conversation_agent")}
    assert client.calls[first.call_id].timeout_s == 30


async def test_a_failing_callback_is_reported_and_loses_no_result() -> None:
    told: list[str] = []

    async def slow(result: ToolResult) -> None:
        await asyncio.sleep(0)
        told.append(result.call_id)

    def broken(result: ToolResult) -> None:
        raise LookupError(result.tool_id)

    listening = ToolSubAgent("a", FakeToolAgentClient(), on_result_callback=slow)
    result = await listening.execute("echo")
    assert told == [result.call_id]
    failing = ToolSubAgent("b", FakeToolAgentClient(), on_result_callback=broken)
    assert (await failing.execute("echo")).status == "success"
    details = failing.get_execution_summary()["call_details"]
    assert isinstance(details, list)
    assert isinstance(details[0], dict)
    assert details[0]["callback_error"] == "LookupError: echo"


async def test_a_call_that_is_pending_or_refused_is_a_result_too() -> None:
    sub_agent = ToolSubAgent("a", FakeToolAgentClient(away=True))
    assert (await sub_agent.execute("echo")).error_type is ErrorType.UNAVAILABLE
    assert sub_agent.get_brief_summary()["has_errors"] is True


async def test_what_is_no_call_is_a_result_and_loses_nobody_elses() -> None:
    sub_agent = ToolSubAgent("a", FakeToolAgentClient())
    results = await sub_agent.execute_batch([("good", {}), ("Not an id", {}), ("good", {"n": 1})])
    assert [(one.status, one.error_type) for one in results] == [
        ("success", None),
        ("error", ErrorType.VALIDATION_ERROR),
        ("success", None),
    ]
    assert [(issue.path, issue.keyword) for issue in results[1].validation_errors] == [("$.tool_id", "string_pattern_mismatch")]
    assert (results[1].call_id, results[1].tool_id) == ("", "Not an id")
    alone = await sub_agent.execute("good", timeout=-1)
    assert [issue.path for issue in alone.validation_errors] == ["$.timeout_s"]
    summary = sub_agent.get_brief_summary()
    assert (summary["total_calls"], summary["tool_usage"]) == (4, {"good": 3, "Not an id": 1})


class Breaking:
    """Fails with an unknown exception for `breaker`; `ended` are the other calls."""

    def __init__(self) -> None:
        self.ended: list[str] = []

    async def run(self, call: ToolCall) -> ToolResult:
        if call.tool_id == "breaker":
            raise LookupError
        for _ in range(10):
            await asyncio.sleep(0)
        self.ended.append(call.tool_id)
        return echo(call, "call-00000000")


async def test_a_connection_that_breaks_is_raised_when_the_others_have_ended() -> None:
    calls = Breaking()
    sub_agent = ToolSubAgent("a", calls)
    with pytest.raises(LookupError):
        await sub_agent.execute_batch([("breaker", {}), ("one", {}), ("two", {})])
    assert calls.ended == ["one", "two"]
    assert sub_agent.get_brief_summary()["total_calls"] == 2


async def test_the_contexts_of_the_specification_become_the_caller() -> None:
    client = FakeToolAgentClient()
    talking = ToolSubAgent.for_conversation("sub", client, "agent_1", "conv_1")
    working = ToolSubAgent.for_workflow("sub", client, "wf_1", "node_1")
    first, second = await talking.execute("echo"), await working.execute("echo")
    told = client.calls[first.call_id].caller, client.calls[second.call_id].caller
    assert (told[0].caller_type, told[0].caller_id, told[0].conversation_id) == ("conversation_agent", "agent_1", "conv_1")
    assert (told[1].caller_type, told[1].workflow_id, told[1].node_id) == ("workflow_node", "wf_1", "node_1")
    assert ToolSubAgent("idle", client).get_brief_summary() == {
        "total_calls": 0,
        "success_rate": 100.0,
        "tool_usage": {},
        "has_errors": False,
    }
