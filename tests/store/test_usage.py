"""The usage of tools, from the records of their calls."""

from datetime import UTC, datetime, timedelta

import pytest

from engine.store.calls import CallTable
from engine.store.database import Database
from engine.store.usage import UsageTable
from toolagent.contracts.calls import Caller, ErrorType, ToolError
from toolagent.contracts.records import CallRecord
from toolagent.contracts.usage import CallListing, ToolUsage
from toolagent.core.calls.results import failed, succeeded

AT = datetime(2026, 3, 26, 12, tzinfo=UTC)


async def record(
    database: Database,
    number: int,
    seconds: float | None,
    error: ErrorType | None = None,
    tool_id: str = "echo",
    said_in: str | None = None,
) -> None:
    """Records one minute apart; without `seconds` the call has not ended. `said_in` is its conversation."""
    call_id, at = f"call-{tool_id}-{number:08}", AT + timedelta(minutes=number)
    told = CallRecord(
        call_id=call_id,
        tool_id=tool_id,
        version="1.0.0",
        fingerprint="f",
        workflow_id="w",
        run_id="r",
        created_at=at,
        caller=Caller(conversation_id=said_in, variables={"api_key": "sesame"}),
    )
    if seconds is None:
        await CallTable(database).mark_sent(told)
        return
    if error is None:
        result = succeeded(call_id, tool_id, 1, at, execution_time=seconds, metadata={})
    else:
        result = failed(call_id, tool_id, ToolError(type=error, message="no"), at).model_copy(update={"execution_time": seconds})
    await CallTable(database).settle(told, result, ())


async def test_calls_are_counted_and_their_times_are_those_that_reached_the_tool(database: Database) -> None:
    for number in range(1, 20):
        await record(database, number, number / 10)
    await record(database, 20, 2.0, ErrorType.TIMEOUT)
    await record(database, 21, 0.0, ErrorType.VALIDATION_ERROR)
    await record(database, 22, None)
    await record(database, 1, 9.0, tool_id="other")
    usage = await UsageTable(database).of_tool("echo")
    assert usage.average_s == pytest.approx(1.05)
    assert usage.model_copy(update={"average_s": None}) == ToolUsage(
        tool_id="echo",
        calls=22,
        running=1,
        succeeded=19,
        failed=2,
        errors={"timeout": 1, "validation_error": 1},
        error_rate=2 / 21,
        p95_s=1.9,
        last_used=AT + timedelta(minutes=22),
    )
    since = AT + timedelta(minutes=20)
    lately = await UsageTable(database).of_tool("echo", since)
    assert (lately.since, lately.calls, lately.failed, lately.p95_s) == (since, 3, 2, 2.0)


async def test_a_tool_that_was_never_called_has_no_rate_and_no_times(database: Database) -> None:
    assert await UsageTable(database).of_tool("echo") == ToolUsage(tool_id="echo", calls=0)


async def test_when_tools_were_used_last(database: Database) -> None:
    for number, tool_id in ((1, "a"), (3, "a"), (2, "b")):
        await record(database, number, 0.1, tool_id=tool_id)
    used = await CallTable(database).last_used(("a", "b", "never"))
    assert sorted(used, key=lambda tool_id: used[tool_id]) == ["b", "a"]


async def test_calls_of_a_conversation_are_listed_and_all_of_them_counted(database: Database) -> None:
    for number in range(1, 4):
        await record(database, number, 0.5, said_in="conv_001")
    await record(database, 4, 0.5, ErrorType.TIMEOUT, "slow", said_in="conv_001")
    await record(database, 5, None, said_in="conv_001")
    await record(database, 6, 0.5, said_in="conv_002")
    table = UsageTable(database)
    told = await table.of_calls("conv_001", None, 2)
    assert told.model_copy(update={"calls": ()}) == CallListing(
        total_calls=5, successful_calls=3, failed_calls=1, success_rate=75.0, tool_usage={"echo": 4, "slow": 1}
    )
    assert [(call.call_id, call.is_success, call.error_type, call.caller.conversation_id) for call in told.calls] == [
        ("call-echo-00000005", None, None, "conv_001"),
        ("call-slow-00000004", False, ErrorType.TIMEOUT, "conv_001"),
    ]
    assert told.calls[0].caller.variables == {}
    assert (await table.of_calls(None, "echo", 10)).total_calls == 5
    assert (await table.of_calls("conv_001", "slow", 10)).tool_usage == {"slow": 1}
    assert await table.of_calls("conv_003", None, 10) == CallListing(total_calls=0, successful_calls=0, failed_calls=0)
