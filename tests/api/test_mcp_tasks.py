"""Long calls as tasks."""

import asyncio
from datetime import UTC, datetime

import pytest
from mcp_types import INTERNAL_ERROR
from pydantic import JsonValue

from api.mcp.calls.underway import Underway
from tests.api.conftest import ECHO, House
from tests.api.mcp_client import NEW, OLD, TASKS, Caller, calling, messages_of, said_by
from toolagent.client.call_ids import new_call_id
from toolagent.contracts.calls import ErrorType, ToolCall, ToolError, ToolResult
from toolagent.contracts.manifest import TaskSupport
from toolagent.contracts.records import CallRecord
from toolagent.contracts.sources import BuiltinSource, McpSource
from toolagent.core.calls.results import failed, succeeded

DECLARED: dict[str, JsonValue] = {"elicitation": {}, "extensions": {TASKS: {}}}
SOURCE = BuiltinSource(handler="echo")


def goes_on(_call: ToolCall, _call_id: str) -> ToolResult | None:
    return None


async def offer(house: House, support: TaskSupport) -> None:
    await house.registry.register(ECHO.model_copy(update={"tool_id": "long", "task_support": support}), (SOURCE,))


async def test_a_call_that_takes_long_becomes_a_task_whose_result_is_had_later(stocked: House) -> None:
    stocked.client.script = goes_on
    async with calling(stocked.dependencies, NEW, DECLARED) as client:
        created = await client.result("tools/call", name="echo", arguments={})
        task_id = created["taskId"]
        assert (created["resultType"], created["status"], task_id) == ("task", "working", *stocked.client.calls)
        assert (await client.result("tasks/get", taskId=task_id))["status"] == "working"
        end = succeeded(task_id, "echo", {"said": "hi"}, datetime.now(UTC), execution_time=0.0, metadata={})
        stocked.client.finish(task_id, end)
        done = await client.result("tasks/get", taskId=task_id)
        assert (done["status"], done["result"]["structuredContent"]) == ("completed", {"said": "hi"})


async def test_a_question_of_a_task_is_answered_by_its_key(stocked: House) -> None:
    stocked.client.script = goes_on
    messages = said_by(stocked)
    async with calling(stocked.dependencies, NEW, DECLARED) as client:
        task_id = (await client.result("tools/call", name="echo", arguments={}))["taskId"]
        asked: dict[str, JsonValue] = {
            "method": "elicitation/create",
            "params": {"mode": "form", "message": "Sure?", "requestedSchema": {}},
            "key": "sure",
        }
        await messages.say_all(task_id, [("question", asked)])
        shown = await client.result("tasks/get", taskId=task_id)
        assert (shown["status"], shown["inputRequests"]["sure"]["method"]) == ("input_required", "elicitation/create")
        assert await client.result("tasks/update", taskId=task_id, inputResponses={"sure": {"action": "decline"}}) | {"_meta": 0} == {
            "resultType": "complete",
            "_meta": 0,
        }
        ((question),) = await messages.after(task_id)
        assert question.answer == {"result": {"action": "decline"}}
        assert (await client.result("tasks/get", taskId=task_id))["status"] == "working"


async def test_a_continued_call_hears_nothing_twice_and_is_asked_what_it_left_open(stocked: House) -> None:
    asks = ECHO.model_copy(update={"tool_id": "asks"})
    await stocked.registry.register(asks, (McpSource(url="http://127.0.0.1:1/mcp", tool_name="asks"),))
    stocked.client.script = goes_on
    messages = said_by(stocked)
    async with calling(stocked.dependencies, NEW, {"elicitation": {}}) as client:
        request, headers = client.request("tools/call", name="asks", arguments={}, _meta={"progressToken": 7})
        waiting = asyncio.create_task(client.post(request, headers))
        async with asyncio.timeout(10):
            while not stocked.client.calls:  # noqa: ASYNC110 - the fake client tells nobody
                await asyncio.sleep(0)
        (call_id,) = stocked.client.calls
        await messages.say_all(call_id, [("progress", {"progress": number}) for number in range(600)])
        form: dict[str, JsonValue] = {"mode": "form", "message": "Sure?", "requestedSchema": {"type": "object", "properties": {}}}
        await messages.say_all(call_id, [("question", {"method": "elicitation/create", "params": form, "key": key}) for key in "ab"])
        *told, asked = messages_of(await waiting)
        state = asked["result"]["requestState"]
        assert (len(told), [*asked["result"]["inputRequests"]]) == (600, ["a", "b"])
        given: dict[str, JsonValue] = {"requestState": state, "inputResponses": {"a": {"action": "decline"}}}
        request, headers = client.request("tools/call", name="asks", arguments={}, _meta={"progressToken": 7}, **given)
        (again,) = messages_of(await client.post(request, headers))
        assert [*again["result"]["inputRequests"]] == ["b"]
        assert [one.payload["key"] for one in await messages.open_questions(call_id)] == ["b"]


async def test_a_task_is_cancelled(stocked: House) -> None:
    stocked.client.script = goes_on
    async with calling(stocked.dependencies, NEW, DECLARED) as client:
        task_id = (await client.result("tools/call", name="echo", arguments={}))["taskId"]
        assert (await client.result("tasks/cancel", taskId=task_id))["resultType"] == "complete"
        assert (await client.result("tasks/get", taskId=task_id))["status"] == "cancelled"


async def test_a_tool_that_forbids_tasks_is_waited_for(stocked: House) -> None:
    await offer(stocked, TaskSupport.FORBIDDEN)
    async with calling(stocked.dependencies, NEW, DECLARED) as client:
        assert (await client.result("tools/call", name="long", arguments={}))["resultType"] == "complete"
    async with calling(stocked.dependencies, OLD) as client:
        assert (await client.error("tools/call", name="long", arguments={}, task={}))["code"] == -32601


async def test_a_tool_that_requires_a_task_wants_a_client_that_takes_one(stocked: House) -> None:
    await offer(stocked, TaskSupport.REQUIRED)
    async with calling(stocked.dependencies, NEW) as client:
        error = await client.error("tools/call", name="long", arguments={})
        assert (error["code"], error["data"]) == (-32021, {"requiredCapabilities": {"extensions": {TASKS: {}}}})
        for method in ("tasks/get", "tasks/cancel"):
            assert (await client.error(method, taskId="x"))["code"] == -32021


async def test_a_task_that_nobody_knows_is_refused(stocked: House) -> None:
    async with calling(stocked.dependencies, NEW, DECLARED) as client:
        for method in ("tasks/get", "tasks/cancel"):
            assert (await client.error(method, taskId="call-00000000"))["code"] == -32602
        assert (await client.error("tasks/result", taskId="call-00000000"))["code"] == -32601


async def test_what_is_no_id_of_a_task_names_no_task(stocked: House) -> None:
    async with calling(stocked.dependencies, OLD) as client:
        for task_id in ("", "call-x", "call-00000000\n"):
            assert (await client.error("tasks/get", taskId=task_id))["code"] == -32602


async def test_a_task_of_the_older_revision_asks_nothing(stocked: House) -> None:
    asks = ECHO.model_copy(update={"tool_id": "asks"})
    await stocked.registry.register(asks, (McpSource(url="http://127.0.0.1:1/mcp", tool_name="asks"),))
    stocked.client.script = goes_on
    async with calling(stocked.dependencies, OLD, {"elicitation": {}}) as client:
        task_id = (await client.result("tools/call", name="asks", arguments={}, task={}))["task"]["taskId"]
        assert stocked.client.calls[task_id].listens is None
        await said_by(stocked).say_all(task_id, [("question", {"method": "elicitation/create", "params": {"message": "Sure?"}})])
        shown = await client.result("tasks/get", taskId=task_id)
        assert (shown["status"], "inputRequests" in shown) == ("working", False)


async def test_a_key_of_another_call_is_the_callers_error_of_a_task_too(stocked: House) -> None:
    key: dict[str, JsonValue] = {"toolagent/idempotency_key": "one"}
    async with calling(stocked.dependencies, OLD) as client:
        await client.result("tools/call", name="echo", arguments={}, task={}, _meta=key)
        error = await client.error("tools/call", name="echo", arguments={"message": "other"}, task={}, _meta=key)
        assert (error["code"], error["data"]["type"], error["data"]["details"]["reason"]) == (-32602, "rejected", "idempotency_conflict")
        stocked.client.away = True
        error = await client.error("tools/call", name="echo", arguments={}, task={})
        assert (error["code"], error["data"]["type"]) == (INTERNAL_ERROR, "unavailable")


async def test_a_session_lists_its_own_tasks_in_pages(stocked: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.mcp.calls.tasks.PAGE", 2)
    stocked.client.script = goes_on
    async with calling(stocked.dependencies, OLD) as client:
        ids = [(await client.result("tools/call", name="echo", arguments={}, task={}))["task"]["taskId"] for _ in range(3)]
        stocked.client.finish(ids[2], succeeded(ids[2], "echo", {}, datetime.now(UTC), execution_time=0.0, metadata={}))
        page = await client.result("tasks/list")
        rest = await client.result("tasks/list", cursor=page["nextCursor"])
        told = [(task["taskId"], task["status"], task["ttl"]) for task in page["tasks"] + rest["tasks"]]
        assert told == [(ids[0], "working", None), (ids[1], "working", None), (ids[2], "completed", None)]
        assert ("nextCursor" in rest, (await client.error("tasks/list", cursor="?"))["code"]) == (False, -32602)
        other = await Caller(client.http, OLD).open()
        assert (await other.result("tasks/list"))["tasks"] == []


async def test_tasks_of_the_older_revision(stocked: House) -> None:
    stocked.client.script = goes_on
    async with calling(stocked.dependencies, OLD) as client:
        task = (await client.result("tools/call", name="echo", arguments={}, task={"ttl": 60_000}))["task"]
        assert (task["status"], await client.result("tasks/get", taskId=task["taskId"]) | {"_meta": 0}) == (
            "working",
            {**task, "createdAt": task["createdAt"], "_meta": 0}
            | {key: (await client.result("tasks/get", taskId=task["taskId"]))[key] for key in ("createdAt", "lastUpdatedAt")},
        )
        error = ToolError(type=ErrorType.EXECUTION_ERROR, message="It broke.")
        stocked.client.finish(task["taskId"], failed(task["taskId"], "echo", error, datetime.now(UTC)))
        result = await client.result("tasks/result", taskId=task["taskId"])
        assert (result["isError"], result["_meta"]["io.modelcontextprotocol/related-task"]) == (True, {"taskId": task["taskId"]})


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ToolError(type=ErrorType.EXECUTION_ERROR, message="It says no.", details={"is_error": True}), "completed"),
        (ToolError(type=ErrorType.EXECUTION_ERROR, message="It is broken.", details={"code": -32603}), "failed"),
        (ToolError(type=ErrorType.EXECUTION_ERROR, message="Its host has gone.", details={"outcome": "unknown"}), "failed"),
        (ToolError(type=ErrorType.TIMEOUT, message="It took too long."), "failed"),
    ],
)
async def test_only_what_kept_the_tool_from_answering_makes_a_task_fail(stocked: House, error: ToolError, status: str) -> None:
    stocked.client.script = goes_on
    async with calling(stocked.dependencies, NEW, DECLARED) as client:
        task_id = (await client.result("tools/call", name="echo", arguments={}))["taskId"]
        stocked.client.finish(task_id, failed(task_id, "echo", error, datetime.now(UTC)))
        assert (await client.result("tasks/get", taskId=task_id))["status"] == status


async def test_a_task_is_not_denied_while_temporal_is_away(stocked: House) -> None:
    stocked.client.script = goes_on
    async with calling(stocked.dependencies, NEW, DECLARED) as client:
        task_id = (await client.result("tools/call", name="echo", arguments={}))["taskId"]
        stocked.client.away = True
        assert (await client.error("tasks/get", taskId=task_id))["code"] == INTERNAL_ERROR
        stocked.client.away = False
        assert (await client.result("tasks/get", taskId=task_id))["status"] == "working"


async def test_a_cancellation_that_does_not_reach_temporal_is_no_success(stocked: House) -> None:
    stocked.client.script = goes_on
    async with calling(stocked.dependencies, NEW, DECLARED) as client:
        task_id = (await client.result("tools/call", name="echo", arguments={}))["taskId"]
        await stocked.calls.mark_sent(recorded(task_id))
        stocked.client.away = True
        error = await client.error("tasks/cancel", taskId=task_id)
        assert (error["code"], "Ask again" in error["message"]) == (INTERNAL_ERROR, True)


async def test_a_client_that_goes_cancels_its_call_also_when_temporal_is_away_for_a_while(stocked: House) -> None:
    stocked.client.script = goes_on
    underway = Underway(stocked.client, stocked.calls)
    call_id = new_call_id()
    underway.begin(ToolCall(tool_id="echo"), call_id, is_new=True)
    async with asyncio.timeout(10):
        while call_id not in stocked.client.calls:  # noqa: ASYNC110 - the fake client tells nobody
            await asyncio.sleep(0)
        stocked.client.away = True
        underway.cancel_soon(call_id)
        for _ in range(5):
            await asyncio.sleep(0)
        stocked.client.away = False
        result = await stocked.client.result(call_id)
    assert result.error is not None
    assert result.error.type is ErrorType.CANCELLED
    await underway.close()


def recorded(task_id: str) -> CallRecord:
    """A call that was sent and has not ended."""
    return CallRecord(
        call_id=task_id,
        tool_id="echo",
        version="1.0.0",
        fingerprint="f",
        workflow_id=task_id,
        run_id="r",
        created_at=datetime.now(UTC),
    )


async def test_the_end_of_a_task_is_told_before_its_record_is_settled(stocked: House) -> None:
    stocked.client.script = goes_on
    async with calling(stocked.dependencies, NEW, DECLARED) as client:
        task_id = (await client.result("tools/call", name="echo", arguments={}))["taskId"]
        await stocked.calls.mark_sent(recorded(task_id))
        stocked.client.finish(task_id, succeeded(task_id, "echo", {"said": "hi"}, datetime.now(UTC), execution_time=0.0, metadata={}))
        done = await client.result("tasks/get", taskId=task_id)
        assert (done["status"], done["result"]["structuredContent"]) == ("completed", {"said": "hi"})
