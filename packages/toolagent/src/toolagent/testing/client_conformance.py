"""Checks the promises of every client: the fake, the Temporal and the HTTP client.

The service must have a tool that returns its parameters, and no tool `no_such_tool`.
"""

import uuid
from typing import Protocol

from toolagent.contracts.batches import BatchResult, ToolBatch
from toolagent.contracts.calls import Caller, ErrorType, ToolCall, ToolResult
from toolagent.contracts.tasks import TaskState, TaskView
from toolagent.core.calls.batches import SKIPPED
from toolagent.core.calls.idempotency import call_id_for_key
from toolagent.core.calls.results import IDEMPOTENCY_CONFLICT, reason_of

__all__ = ["ClientUnderTest", "check_client"]


class ClientUnderTest(Protocol):
    """A client that returns refused calls and batches as results instead of raising errors."""

    async def run(self, call: ToolCall) -> ToolResult: ...
    async def start(self, call: ToolCall) -> str: ...
    async def ended(self, call_id: str) -> TaskView: ...
    async def task(self, call_id: str) -> TaskView | None: ...
    async def cancel(self, call_id: str) -> bool: ...
    async def run_batch(self, batch: ToolBatch) -> BatchResult | ToolResult: ...


async def check_client(client: ClientUnderTest, echo: str) -> None:
    """`echo` is the id of the tool that returns its parameters. Raises AssertionError with the broken promise."""
    await _a_call_gives_its_result_again(client, echo)
    await _one_key_is_one_call(client, echo)
    await _a_started_call_can_be_followed(client, echo)
    await _a_task_that_was_not_started_is_unknown(client)
    await _a_batch_keeps_its_order(client, echo)
    await _a_batch_that_stops_skips_the_rest(client, echo)
    await _one_key_is_one_batch(client, echo)


def _call(tool_id: str, message: str, key: str | None = None) -> ToolCall:
    return ToolCall(tool_id=tool_id, params={"message": message}, caller=Caller(caller_id="conformance"), idempotency_key=key)


async def _a_call_gives_its_result_again(client: ClientUnderTest, echo: str) -> None:
    result = await client.run(_call(echo, "你好"))
    _require((result.status, result.result, result.tool_id) == ("success", {"message": "你好"}, echo), f"a call succeeds: {result}")
    view = await client.task(result.call_id)
    _require(view is not None and view.result == result and view.status is TaskState.COMPLETED, f"its task has the same result: {view}")
    missing = await client.run(_call("no_such_tool", "x"))
    _require(missing.error_type is ErrorType.TOOL_NOT_FOUND, f"a tool that is not there is an answer: {missing}")


async def _one_key_is_one_call(client: ClientUnderTest, echo: str) -> None:
    key = uuid.uuid4().hex
    first, second = await client.run(_call(echo, "one", key)), await client.run(_call(echo, "one", key))
    _require(first == second and first.call_id == call_id_for_key("conformance", key), f"one key is one call: {first}, {second}")
    other = await client.run(_call(echo, "two", key))
    _require((other.error_type, reason_of(other)) == (ErrorType.REJECTED, IDEMPOTENCY_CONFLICT), f"another call is refused: {other}")


async def _a_started_call_can_be_followed(client: ClientUnderTest, echo: str) -> None:
    call_id = await client.start(_call(echo, "later"))
    view = await client.ended(call_id)
    _require(view.result is not None and view.result.result == {"message": "later"}, f"a started call ends: {view}")
    _require(await client.cancel(call_id), "a call that has ended can be asked to end")
    _require(await client.ended(call_id) == view, "a call that has ended stays as it is")


async def _a_task_that_was_not_started_is_unknown(client: ClientUnderTest) -> None:
    unknown = f"call-{uuid.uuid4().hex}"
    _require(await client.task(unknown) is None, "a task that was not started is unknown")
    _require(not await client.cancel(unknown), "and cannot be cancelled")


async def _a_batch_keeps_its_order(client: ClientUnderTest, echo: str) -> None:
    shared = _call(echo, "shared", uuid.uuid4().hex)
    calls = (_call(echo, "a"), _call("no_such_tool", "x"), shared, shared, _call(echo, "b"))
    ended = await client.run_batch(ToolBatch(calls=calls))
    _require(isinstance(ended, BatchResult), f"a batch has results: {ended}")
    if isinstance(ended, BatchResult):
        given = [one.result for one in ended.results]
        _require(given == [{"message": "a"}, None, {"message": "shared"}, {"message": "shared"}, {"message": "b"}], f"in order: {given}")
        _require(ended.results[2] == ended.results[3], "the same key twice is one call")
        _require((ended.total, ended.succeeded, ended.failed) == (5, 4, 1), f"they are counted: {ended}")


async def _a_batch_that_stops_skips_the_rest(client: ClientUnderTest, echo: str) -> None:
    calls = (_call("no_such_tool", "x"), _call(echo, "never"))
    ended = await client.run_batch(ToolBatch(calls=calls, ordered=True, stop_on_error=True))
    results = list(ended.results) if isinstance(ended, BatchResult) else []
    kinds = [(one.error_type, reason_of(one)) for one in results]
    _require(kinds == [(ErrorType.TOOL_NOT_FOUND, None), (ErrorType.CANCELLED, SKIPPED)], f"the rest is not begun: {ended}")


async def _one_key_is_one_batch(client: ClientUnderTest, echo: str) -> None:
    batch = ToolBatch(calls=(_call(echo, "a"),), idempotency_key=uuid.uuid4().hex, caller=Caller(caller_id="conformance"))
    first, second = await client.run_batch(batch), await client.run_batch(batch)
    _require(isinstance(first, BatchResult) and first == second, f"one key is one batch: {first}, {second}")
    other = await client.run_batch(batch.model_copy(update={"calls": (_call(echo, "b"),)}))
    reason = reason_of(other) if isinstance(other, ToolResult) else None
    _require(reason == IDEMPOTENCY_CONFLICT, f"another batch under it is refused: {other}")


def _require(kept: bool, promise: str) -> None:
    if not kept:
        raise AssertionError(promise)
