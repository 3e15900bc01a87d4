"""Sessions of the older revision are in the database, so that any front door can continue them."""

import asyncio
import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from pydantic import JsonValue
from starlette.types import Message

from api.app import create_app, end_streams, running_mcp
from api.mcp.changes import Standing
from api.mcp.sessions.events import EventStream
from engine.store.database import Database
from engine.store.mcp_sessions import McpSessionTable
from tests.api.conftest import BASE_URL, ECHO, House
from tests.api.mcp_client import NEW, OLD, Caller, calling, door, said_by
from tests.api.mcp_streams import opened
from toolagent.contracts.calls import ToolCall, ToolResult
from toolagent.contracts.sources import McpSource
from toolagent.core.calls.results import succeeded

ASKS = ECHO.model_copy(update={"tool_id": "asks", "output_schema": {}})
SOURCE = McpSource(url="http://127.0.0.1:1/mcp", tool_name="asks")


def goes_on(_call: ToolCall, _call_id: str) -> ToolResult | None:
    return None


def finish(house: House, call_id: str) -> None:
    house.client.finish(call_id, succeeded(call_id, "echo", {"done": True}, datetime.now(UTC), execution_time=0.0, metadata={}))


@pytest.fixture
def table(database: Database) -> McpSessionTable:
    return McpSessionTable(database)


async def test_another_front_door_goes_on_with_a_session(stocked: House) -> None:
    async with calling(stocked.dependencies, OLD) as first:
        session_id = first.session_id
    async with door(stocked.dependencies) as http:
        second = Caller(http, OLD, session_id=session_id)
        assert (await second.result("ping")) == {}


async def test_a_closed_session_and_one_that_never_was_are_not_found(stocked: House) -> None:
    async with calling(stocked.dependencies, OLD) as client:
        assert (await client.http.delete("/mcp", headers=client.headers)).status_code == 200
        for session_id in (client.session_id, "0" * 32):
            message, _ = client.request("ping")
            answer = await client.post(message, {"Mcp-Session-Id": session_id or ""})
            assert (answer.status_code, answer.json()["error"]["code"]) == (404, -32600)


async def test_sessions_that_nobody_uses_are_closed(stocked: House, table: McpSessionTable) -> None:
    async with calling(stocked.dependencies, OLD) as client:
        assert await table.expire(timedelta(hours=1)) == 0
        assert await table.expire(timedelta(0)) == 1
        assert await table.get(client.session_id or "") is None


async def test_a_session_keeps_its_level_and_its_subscriptions(stocked: House, table: McpSessionTable) -> None:
    uris = ["toolagent://tools/echo", "toolagent://tools/weather"]
    async with calling(stocked.dependencies, OLD) as client:
        await client.result("logging/setLevel", level="error")
        for uri in uris:
            await client.result("resources/subscribe", uri=uri)
        await client.result("resources/unsubscribe", uri=uris[0])
        session = await table.get(client.session_id or "")
    assert session is not None
    assert (session.log_level, session.subscriptions) == ("error", (uris[1],))


async def test_subscriptions_and_a_level_at_the_same_time_are_all_kept(stocked: House, table: McpSessionTable) -> None:
    uris = [f"toolagent://tools/t{at}" for at in range(8)]
    async with calling(stocked.dependencies, OLD) as client:
        asked = [client.result("resources/subscribe", uri=uri) for uri in uris]
        await asyncio.gather(*asked, client.result("logging/setLevel", level="error"))
        session = await table.get(client.session_id or "")
    assert session is not None
    assert (session.log_level, set(session.subscriptions)) == ("error", set(uris))


async def test_a_stream_ends_with_its_session(stocked: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.mcp.sessions.resuming._LOOKED_S", 0.01)
    async with opened(stocked.dependencies, OLD) as client:
        standing = await client.resume(None)
        await standing.primed()
        assert (await client.caller.http.delete("/mcp", headers=client.caller.headers)).status_code == 200
        assert await standing.ended()


async def test_only_so_many_streams_stand_open(stocked: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.mcp.sessions.resuming._MOST_STANDING", 1)
    async with opened(stocked.dependencies, OLD) as client:
        await (await client.resume(None)).primed()
        headers = {**client.caller.headers, "Accept": "text/event-stream"}
        assert (await client.caller.http.get("/mcp", headers=headers)).status_code == 503


async def test_progress_and_logs_come_before_the_result_and_a_question_is_answered(stocked: House) -> None:
    await stocked.registry.register(ASKS, (SOURCE,))
    stocked.client.script = goes_on
    async with opened(stocked.dependencies, OLD, {"elicitation": {}}) as client:
        stream = await client.stream("tools/call", name="asks", arguments={}, _meta={"progressToken": 7})
        (call_id,) = await client.calls(stocked, 1)
        messages = said_by(stocked)
        await messages.say_all(call_id, [("progress", {"progress": 1, "total": 2})])
        await messages.say_all(call_id, [("log", {"level": "info", "data": "half"})])
        await messages.say_all(call_id, [("question", {"method": "elicitation/create", "params": {"message": "Sure?"}})])
        assert await stream.next() == {"method": "notifications/progress", "params": {"progressToken": 7, "progress": 1.0, "total": 2.0}}
        assert await stream.next() == {"method": "notifications/message", "params": {"level": "info", "data": "half"}}
        asked = await stream.next()
        assert (asked["method"], asked["params"]) == ("elicitation/create", {"message": "Sure?"})
        given = {"action": "accept", "content": {"sure": True}}
        assert (await client.post({"jsonrpc": "2.0", "id": asked["id"], "result": given})).status_code == 202
        (_, _, question) = await messages.after(call_id)
        assert question.answer == {"result": given}
        finish(stocked, call_id)
        assert (await stream.next())["result"]["structuredContent"] == {"done": True}
        assert await stream.ended()


async def test_a_client_whose_stream_broke_hears_the_rest_at_another_door(stocked: House) -> None:
    stocked.client.script = goes_on
    async with opened(stocked.dependencies, OLD) as client:
        stream = await client.stream("tools/call", name="echo", arguments={}, _meta={"progressToken": "t"})
        (call_id,) = await client.calls(stocked, 1)
        messages = said_by(stocked)
        await messages.say_all(call_id, [("progress", {"progress": 1})])
        await stream.next()
        await stream.leave()
        await messages.say_all(call_id, [("progress", {"progress": 2})])
    async with opened(stocked.dependencies, OLD, session_id=client.session_id) as other:
        rest = await other.resume(stream.last_event_id)
        assert (await rest.next())["params"]["progress"] == 2
        finish(stocked, call_id)
        answer = await rest.next()
        assert (answer["id"], answer["result"]["structuredContent"]) == (stream.request_id, {"done": True})


async def test_a_stream_of_another_session_is_refused(stocked: House) -> None:
    stocked.client.script = goes_on
    async with opened(stocked.dependencies, OLD) as client:
        stream = await client.stream("tools/call", name="echo", arguments={}, _meta={"progressToken": "t"})
        (call_id,) = await client.calls(stocked, 1)
        await said_by(stocked).say_all(call_id, [("progress", {"progress": 1})])
        await stream.next()
        event_id = stream.last_event_id
    async with opened(stocked.dependencies, OLD) as other:
        answer = await other.caller.http.get("/mcp", headers={**other.caller.headers, "Last-Event-ID": event_id})
        assert answer.status_code == 400


@pytest.mark.parametrize("revision", [OLD, NEW])
async def test_who_cancels_ends_the_call(stocked: House, revision: str) -> None:
    stocked.client.script = goes_on
    async with opened(stocked.dependencies, revision) as client:
        stream = await client.stream("tools/call", name="echo", arguments={}, _meta={"progressToken": "t"})
        (call_id,) = await client.calls(stocked, 1)
        if revision == OLD:
            await client.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": stream.request_id}})
        else:
            await stream.leave()
        result = await stocked.client.result(call_id)
        assert result.error is not None
        assert result.error.type.value == "cancelled"


async def test_a_change_of_the_catalog_is_told(stocked: House) -> None:
    async with opened(stocked.dependencies, OLD) as client:
        await client.caller.result("resources/subscribe", uri="toolagent://tools/echo")
        standing = await client.resume(None)
        await standing.primed()
        await stocked.registry.register(ECHO.model_copy(update={"version": "2.0.0"}), (SOURCE,))
        told = [await standing.next() for _ in range(3)]
        assert [one["method"].removeprefix("notifications/") for one in told] == [
            "tools/list_changed",
            "resources/list_changed",
            "resources/updated",
        ]
        await standing.leave()
        await stocked.registry.register(ECHO.model_copy(update={"version": "3.0.0"}), (SOURCE,))
        again = await client.resume(standing.last_event_id)
        assert (await again.next())["method"] == "notifications/tools/list_changed"


async def test_who_listens_anew_hears_nothing_of_what_changed_before(stocked: House) -> None:
    async with opened(stocked.dependencies, OLD) as client:
        first = await client.resume(None)
        await first.primed()
        await first.leave()
        await stocked.registry.register(ECHO.model_copy(update={"version": "2.0.0"}), (SOURCE,))
        await client.caller.result("tools/list")
        again = await client.resume(None)
        await again.primed()
        known = again.last_event_id
        await stocked.registry.register(ECHO.model_copy(update={"version": "3.0.0"}), (SOURCE,))
        await again.next()
        before, after = Standing.of(known), Standing.of(again.last_event_id)
        assert before is not None
        assert after is not None
        assert after.catalog > before.catalog


async def test_with_a_key_the_end_of_a_connection_cancels_for_no_other(stocked: House) -> None:
    stocked.client.script = goes_on
    keyed = {"progressToken": "t", "toolagent/idempotency_key": "k"}
    async with opened(stocked.dependencies, NEW) as client:
        first = await client.stream("tools/call", name="echo", arguments={}, _meta=keyed)
        (call_id,) = await client.calls(stocked, 1)
        other = await client.stream("tools/call", name="echo", arguments={}, _meta={"progressToken": "t"})
        (without,) = {*await client.calls(stocked, 2)} - {call_id}
        await first.leave()
        await other.leave()
        # The one without a key is cancelled: by then the first would be, too.
        await stocked.client.result(without)
        finish(stocked, call_id)
        again = await client.caller.result("tools/call", name="echo", arguments={}, _meta=keyed)
        assert again["structuredContent"] == {"done": True}


async def test_a_question_that_was_heard_is_not_asked_again(stocked: House) -> None:
    await stocked.registry.register(ASKS, (SOURCE,))
    stocked.client.script = goes_on
    async with opened(stocked.dependencies, OLD, {"elicitation": {}}) as client:
        stream = await client.stream("tools/call", name="asks", arguments={}, _meta={"progressToken": "t"})
        (call_id,) = await client.calls(stocked, 1)
        await said_by(stocked).say_all(call_id, [("question", {"method": "elicitation/create", "params": {"message": "Sure?"}})])
        assert (await stream.next())["method"] == "elicitation/create"
        await stream.leave()
        rest = await client.resume(stream.last_event_id)
        await said_by(stocked).say_all(call_id, [("progress", {"progress": 1})])
        assert (await rest.next())["method"] == "notifications/progress"


async def test_the_newer_revision_listens(stocked: House) -> None:
    async with opened(stocked.dependencies, NEW) as client:
        stream = await client.stream("subscriptions/listen", notifications={"toolsListChanged": True})
        assert (await stream.next())["method"] == "notifications/subscriptions/acknowledged"
        await stocked.registry.register(ECHO.model_copy(update={"version": "2.0.0"}), (SOURCE,))
        assert (await stream.next())["method"] == "notifications/tools/list_changed"


async def test_a_session_answers_no_question_of_another(stocked: House) -> None:
    await stocked.registry.register(ASKS, (SOURCE,))
    stocked.client.script = goes_on
    async with opened(stocked.dependencies, OLD, {"elicitation": {}}) as client, opened(stocked.dependencies, OLD) as other:
        stream = await client.stream("tools/call", name="asks", arguments={})
        (call_id,) = await client.calls(stocked, 1)
        await said_by(stocked).say_all(call_id, [("question", {"method": "elicitation/create", "params": {"message": "Sure?"}})])
        asked = await stream.next()
        for forged in (asked["id"], f"{call_id}/1"):
            await other.post({"jsonrpc": "2.0", "id": forged, "result": {"action": "accept", "content": {}}})
        assert len(await said_by(stocked).open_questions(call_id)) == 1


async def test_an_event_id_that_nobody_sealed_is_refused(stocked: House) -> None:
    async with calling(stocked.dependencies, OLD) as client:
        forged = json.dumps([client.session_id, "call-00000001", 1, None, 10**30]).encode()
        for event_id in ("x", base64.urlsafe_b64encode(forged).decode()):
            answer = await client.http.get("/mcp", headers={**client.headers, "Last-Event-ID": event_id})
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32600)


async def test_what_json_cannot_say_is_left_out(stocked: House) -> None:
    await stocked.registry.register(ASKS, (SOURCE,))
    stocked.client.script = goes_on
    async with opened(stocked.dependencies, OLD) as client:
        stream = await client.stream("tools/call", name="asks", arguments={}, _meta={"progressToken": 7})
        (call_id,) = await client.calls(stocked, 1)
        messages = said_by(stocked)
        for payload in ({"progress": float("nan")}, {"progress": 10**400}, {"progress": 1, "total": float("inf")}):
            await messages.say_all(call_id, [("progress", payload)])
        await messages.say_all(call_id, [("log", {"level": "info", "data": {"x": float("nan")}})])
        await messages.say_all(call_id, [("progress", {"progress": 3})])
        assert (await stream.next())["params"]["progress"] == 3


async def test_a_stream_begins_with_the_sign_of_life() -> None:
    sent, pinged = list[Message](), asyncio.Event()

    async def receive() -> Message:
        await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)
        if message.get("body") == b": ping\n\n":
            pinged.set()

    stream, work = EventStream(receive, send, {}, ping_s=0.001), asyncio.get_running_loop().create_future()
    following = asyncio.create_task(stream.follow(work, asyncio.Event()))
    await asyncio.wait_for(pinged.wait(), 10)
    work.set_result("done")
    assert await following == "done"
    assert [one["type"] for one in sent[:2]] == ["http.response.start", "http.response.body"]


async def test_who_waits_for_what_has_not_begun_is_told_that_the_service_stops(stocked: House) -> None:
    stocked.client.script = goes_on
    app = create_app(stocked.dependencies)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with running_mcp(app), httpx.AsyncClient(transport=transport, base_url=BASE_URL) as http:
        client = await Caller(http, OLD).open()
        task_id = (await client.result("tools/call", name="echo", arguments={}, task={}))["task"]["taskId"]
        message, _ = client.request("tasks/result", taskId=task_id)
        waiting = asyncio.create_task(client.post(message))
        await until(lambda: bool(tasks_named(f"end of {task_id}")))
        end_streams(app)
        answer = await asyncio.wait_for(waiting, 10)
    assert (answer.status_code, answer.json()["id"], answer.json()["error"]["code"]) == (503, message["id"], -32603)


async def test_nobody_looks_for_the_end_of_a_task_once_all_have_gone(stocked: House) -> None:
    stocked.client.script = goes_on
    async with opened(stocked.dependencies, OLD) as client:
        task_id = (await client.caller.result("tools/call", name="echo", arguments={}, task={}))["task"]["taskId"]
        waiting = [await client.stream("tasks/result", taskId=task_id) for _ in range(3)]
        await until(lambda: len(tasks_named("mcp tasks/result")) == 3 and bool(tasks_named(f"end of {task_id}")))
        assert len(tasks_named(f"end of {task_id}")) == 1
        for stream in waiting:
            await stream.leave()
        await until(lambda: not tasks_named("mcp tasks/result") and not tasks_named(f"end of {task_id}"))


@pytest.mark.parametrize("field", ["id", "progressToken"])
async def test_an_id_that_the_database_cannot_have_is_refused(stocked: House, field: str) -> None:
    async with calling(stocked.dependencies, OLD) as client:
        message: dict[str, JsonValue] = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        text = "x" * 199
        message |= {"id": text} if field == "id" else {"params": {"_meta": {"progressToken": text}}}
        answer = await client.post(message)
        assert (answer.status_code, field in answer.json()["error"]["message"]) == (400, True)
        assert answer.json()["id"] == (None if field == "id" else 1)


def tasks_named(name: str) -> list[asyncio.Task[object]]:
    return [task for task in asyncio.all_tasks() if task.get_name() == name]


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not is_so():  # noqa: ASYNC110 - tasks of the server tell nobody
            await asyncio.sleep(0.01)
