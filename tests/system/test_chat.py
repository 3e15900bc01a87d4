"""Conversations over HTTP and IM at a running service with a scripted model, and KnowHub, which lists the tools they made.

Each message is answered once and in order, whatever is killed.
"""

import asyncio
import json
import signal
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from httpx_sse import EventSource
from pydantic import JsonValue
from typer.testing import CliRunner

from tests.im.people import person
from tests.system.catalog import make_catalog
from tests.system.loaded import start_workers
from tests.system.making_tasks import conversation, ended, rows, serving, word_counter
from tests.system.service_process import ServiceProcess, child_environment, run_tool
from tests.system.waiting import wait_until
from toolagent.cli.app import app
from toolagent.contracts.chats import ChatReply, ChatRole, ChatView
from toolagent.contracts.im import ImType
from toolagent.contracts.tasks import TaskState
from toolagent.testing.servers.im_server import ImServer
from toolagent.testing.servers.knowhub_server import KnowHubServer
from toolagent.testing.servers.model_server import ModelServer
from toolagent.testing.servers.scenario import Conversation, Scenario, Turn

pytestmark = pytest.mark.timeout(400)

EXAMPLES: JsonValue = [{"input": {"text": "a b a"}, "expected_output": {"words": 3, "most_common": "a"}}]
TALLY: dict[str, JsonValue] = {**word_counter("tally"), "examples": EXAMPLES}
TASK: JsonValue = {name: value for name, value in TALLY.items() if name != "runtime"}
WISH = "I need a tally of the words of a text, please make one."
PARROT: JsonValue = {
    "type": "build_tool",
    "tool_name": "parrot",
    "description": "Returns the message that it is given, unchanged.",
    "examples": [{"input": {"message": "a b a"}, "expected_output": {"message": "a b a"}}],
}
"""`echo` does that, which is found out by calling it: nothing is built."""
WISH_OVER_IM = "I need a parrot, please make one."
A_FUNCTION = "SELECT 1 FROM tool_outcomes JOIN chats ON conversation_id LIKE 'chat:' || chats.key || ':%' WHERE chat_id = ?"
TALLIED, ECHOED = "tools/text/tally", "tools/test/echo"
TEXT = "There is echo: it gives back what it gets."


def said(when: str, *turns: JsonValue) -> Conversation:
    return Conversation(name=when or "other", when=when or None, turns=tuple(Turn.model_validate(turn) for turn in turns))


def uses(name: str, **given: JsonValue) -> JsonValue:
    return {"tool_use": {"name": name, "input": given}}


SCENARIO = Scenario(
    seconds=0.3,
    conversations=(
        conversation("word_counter", "tally"),
        said(
            WISH,
            uses("list_tools", keyword="count words"),
            uses("submit_task", type="build", words="many"),
            {"text": "I begin it.", "tool_use": {"name": "submit_task", "input": TASK}, "expect": {"last_result": "Input should be"}},
            {"text": "The task {{ results.submit_task.task_id }} makes it.", "expect": {"is_error": False}},
        ),
        said(
            WISH_OVER_IM,
            uses("list_tools", keyword="parrot"),
            uses("submit_task", **PARROT),
            {"text": "The task {{ results.submit_task.task_id }} looks for it.", "expect": {"is_error": False}},
        ),
        # What was said before is told too: what comes later stands first here.
        said("Are you there?", {"text": "Yes."}),
        said("Break once.", {"text": "It is whole at last, after it broke.", "fault": "cut"}),
        said("Never answer.", {"text": "no", "fault": {"kind": "unauthorized", "times": "forever"}}),
        said("What gives back", uses("get_tool_details", tool_id="echo"), {"text": TEXT}),
        said("", {"text": "Yes."}),
    ),
)


@pytest.fixture(scope="module")
def im() -> Generator[ImServer]:
    with ImServer() as server:
        yield server


@pytest.fixture(scope="module")
def knowhub() -> Generator[KnowHubServer]:
    with KnowHubServer(resources=[{"id": resource, "metadata": {"status": "未接入"}} for resource in (TALLIED, ECHOED)]) as server:
        yield server


@pytest.fixture(scope="module")
def talking(
    im: ImServer, knowhub: KnowHubServer, tmp_path_factory: pytest.TempPathFactory, environments: Path
) -> Generator[tuple[ServiceProcess, ModelServer]]:
    data = make_catalog(tmp_path_factory.mktemp("chat"), environments)
    with serving(tmp_path_factory.mktemp("talking"), data, SCENARIO, IM_URL=im.im_url, KNOWHUB_URL=knowhub.url) as both:
        yield both


def lit_up(knowhub: KnowHubServer, resource: str) -> bool:
    metadata = knowhub.resource(resource)["metadata"]
    assert isinstance(metadata, dict)
    return metadata["status"] == "已接入"


def say(service: ServiceProcess, chat_id: str, message: str, key: str | None = None) -> ChatReply:
    headers = {"Idempotency-Key": key} if key else {}
    answer = service.http.post("/chat", json={"message": message, "chat_id": chat_id}, headers=headers)
    assert answer.status_code == httpx.codes.OK, answer.text
    return ChatReply.model_validate_json(answer.content)


def chat(service: ServiceProcess, chat_id: str) -> ChatView:
    return ChatView.model_validate_json(service.http.get(f"/chats/{quote(chat_id, safe='')}").raise_for_status().content)


def events_of(answer: httpx.Response) -> Generator[tuple[str, str, dict[str, JsonValue]]]:
    for event in EventSource(answer).iter_sse():
        if event.data:
            yield event.event, event.id, json.loads(event.data)


@pytest.mark.promise("chat-once")
def test_a_tool_is_asked_for_and_the_chat_says_that_it_is_there_though_the_service_is_killed(
    talking: tuple[ServiceProcess, ModelServer], knowhub: KnowHubServer
) -> None:
    service, model = talking
    with ThreadPoolExecutor(1) as pool:
        lost = pool.submit(service.http.post, "/chat", json={"message": WISH, "chat_id": "wish"}, headers={"Idempotency-Key": "wish-1"})
        # In the middle: a function was used, and its outcome not told yet.
        wait_until(lambda: rows(service, A_FUNCTION, "wish"), "a function was used")
        service.kill()
        with suppress(httpx.HTTPError):
            lost.result()
    service.start()
    reply = say(service, "wish", WISH, "wish-1")
    (task_id,) = reply.task_ids
    assert (reply.response, reply.error) == (f"The task {task_id} makes it.", "")
    assert rows(service, "SELECT task_id FROM tasks") == [(task_id,)]
    task = ended(service, task_id)
    assert task.status is TaskState.COMPLETED, task.reason
    view = wait_until(lambda: found if (found := chat(service, "wish")).turn_count == 3 else None, "the chat has told the end")
    assert [(turn.role, turn.message_id) for turn in view.turns] == [
        (ChatRole.USER, reply.message_id),
        (ChatRole.ASSISTANT, reply.message_id),
        (ChatRole.ASSISTANT, f"task-{task_id}"),
    ]
    assert "`tally` can be called now" in view.turns[-1].text
    assert run_tool(service.http, "tally", {"text": "b a b c"})[1].result == {"words": 4, "most_common": "b"}
    wait_until(lambda: lit_up(knowhub, TALLIED), "KnowHub knows of it")
    # The same key, in another life of the service, has the same body.
    assert say(service, "wish", WISH, "wish-1") == reply
    assert chat(service, "wish").turn_count == 3
    refused = service.http.post("/chat", json={"message": "else", "chat_id": "wish"}, headers={"Idempotency-Key": "wish-1"})
    assert (refused.status_code, refused.json()["type"]) == (httpx.codes.CONFLICT, "idempotency_conflict")
    assert [fault for fault in model.unmet() if "tally" not in fault] == []


@pytest.mark.long
@pytest.mark.promise("im-answered-once")
async def test_a_wish_over_im_is_answered_once_and_its_window_is_told_of_the_end_though_the_service_is_killed(
    im: ImServer, talking: tuple[ServiceProcess, ModelServer]
) -> None:
    service, window = talking[0], "wish over IM"
    async with person(im) as alice:
        await alice.send(WISH_OVER_IM, window, message_id="wish", own_chat="hers")
        # In the middle: the message is acknowledged, a function was used, and its outcome not told yet.
        await asyncio.to_thread(wait_until, lambda: rows(service, A_FUNCTION, window), "a function was used")
        await asyncio.to_thread(service.kill)
        await asyncio.to_thread(service.start)
        reply = await alice.next(ImType.REPLY)
        ((task_id,),) = rows(service, "SELECT task_id FROM tasks WHERE tool_id = 'parrot'")
        assert reply.content == f"The task {task_id} looks for it."
        notice = await alice.next(ImType.NOTICE)
        assert "`echo` can be called now" in notice.content
        assert (notice.sender_chat_id, notice.receiver_chat_id) == (window, "hers")
        await alice.send("Are you there?", "another", message_id="again")
        assert await alice.replies(1) == ["Yes."]
    assert [turn.text for turn in chat(service, window).turns] == [WISH_OVER_IM, reply.content, notice.content]
    status = service.http.get("/system/status").json()["service_agent"]
    assert (status["im_connected"], status["im"]["waiting"]) == (True, 0)
    assert {"chat_id": window, "sdk_session_id": f"chat/{window}", "has_im_window": True} in status["windows"]
    assert len({message.id for message in im.messages_to("alice") if message.type == ImType.NOTICE}) == 1


async def test_a_process_that_does_nothing_but_im_has_the_chats_of_the_hosts(
    talking: tuple[ServiceProcess, ModelServer], tmp_path: Path
) -> None:
    service, beside = talking[0], {"TEMPORAL_ADDRESS": talking[0].temporal_address}
    database = f"sqlite+aiosqlite:///{service.state / 'tool-agent.db'}"
    with ImServer() as server, (tmp_path / "im.log").open("wb") as log:
        settings = child_environment(tmp_path / "im", tmp_path, {"IM_URL": server.im_url, "DATABASE_URL": database, **beside})
        alone = await asyncio.to_thread(start_workers, ["im"], tmp_path, settings, log, log)
        try:
            async with person(server) as alice:
                await alice.send("Are you there?", "beside", message_id="1")
                assert await alice.replies(1) == ["Yes."]
        finally:
            alone.send_signal(signal.SIGINT)
            code = await asyncio.to_thread(alone.wait, 60)
    assert (code, chat(service, "beside").turn_count) == (0, 2)


def test_knowhub_is_told_of_what_it_lacks_and_a_dry_run_prints_that(
    talking: tuple[ServiceProcess, ModelServer], knowhub: KnowHubServer
) -> None:
    words = ["knowhub", "sync", "--url", talking[0].api_url]
    wait_until(lambda: lit_up(knowhub, ECHOED), "KnowHub knows of the tools that were there from the start")
    as_before: JsonValue = {"metadata": {"status": "未接入", "toolhub_items": []}}
    httpx.patch(f"{knowhub.url}/api/resource/{ECHOED}", json=as_before, trust_env=False).raise_for_status()
    planned = CliRunner().invoke(app, [*words, "--dry-run"])
    assert (planned.exit_code, lit_up(knowhub, ECHOED)) == (0, False)
    assert f"there  {ECHOED}: toolhub_items + echo; status 已接入" in planned.output.splitlines()
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, lit_up(knowhub, ECHOED)) == (0, True)


def test_what_the_model_writes_is_streamed_and_can_be_gone_on_with(talking: tuple[ServiceProcess, ModelServer]) -> None:
    service, _ = talking
    body = {"message": "What gives back what it gets?", "chat_id": "stream", "stream": True}
    with service.http.stream("POST", "/chat", json=body) as answer:
        events = list(events_of(answer))
    assert [kind for kind, _, _ in events] == ["chunk"] * (len(events) - 1) + ["done"]
    chunks = [data for _, _, data in events[:-1]]
    assert [data["type"] for data in chunks[:2]] == ["tool_use", "tool_result"]
    assert "".join(str(data["data"]) for data in chunks if data["type"] == "text") == TEXT
    reply = ChatReply.model_validate(events[-1][2])
    assert (reply.response, reply.tools) == (TEXT, ("echo",))
    with service.http.stream("GET", "/chats/stream/events", headers={"Last-Event-ID": events[0][1]}) as answer:
        again: list[tuple[str, str, dict[str, JsonValue]]] = []
        for event in events_of(answer):
            again.append(event)
            if event[0] == "done":
                break
    assert [event for event in again if event[0] != "message"] == events[1:]


def test_an_answer_that_breaks_off_is_written_again_and_said_so(talking: tuple[ServiceProcess, ModelServer]) -> None:
    service, _ = talking
    with service.http.stream("POST", "/chat", json={"message": "Break once.", "chat_id": "breaks", "stream": True}) as answer:
        events = list(events_of(answer))
    kinds = [data.get("type") for _, _, data in events]
    whole = "".join(str(data["data"]) for _, _, data in events[kinds.index("restart") + 1 : -1])
    assert (whole, events[-1][2]["response"], events[-1][2]["error"]) == (("It is whole at last, after it broke.",) * 2 + ("",))


def test_a_model_that_refuses_is_told_and_the_chat_goes_on(talking: tuple[ServiceProcess, ModelServer]) -> None:
    service, _ = talking
    reply = say(service, "refused", "Never answer.")
    assert "TOOL_AGENT_MODEL_API_KEY" in reply.error
    assert reply.response == f"I could not answer this: {reply.error}"
    assert say(service, "refused", "Are you there?").response == "Yes."


def test_messages_of_one_chat_are_answered_one_after_the_other(talking: tuple[ServiceProcess, ModelServer]) -> None:
    service, _ = talking
    with ThreadPoolExecutor(6) as pool:
        said = [pool.submit(say, service, "many at once", f"Number {number}?") for number in range(6)]
        replies = [one.result() for one in said]
    turns = chat(service, "many at once").turns
    assert [turn.role for turn in turns] == [ChatRole.USER, ChatRole.ASSISTANT] * 6
    assert [turn.message_id for turn in turns[::2]] == [turn.message_id for turn in turns[1::2]]
    assert {reply.message_id for reply in replies} == {turn.message_id for turn in turns}


@pytest.mark.parametrize("chat_id", ["a/b", "a/b/events", "用户 窗口", "..", "100%2F", "x" * 200])
def test_a_chat_may_be_called_anything(talking: tuple[ServiceProcess, ModelServer], chat_id: str) -> None:
    service, _ = talking
    say(service, chat_id, "Hello?")
    path = f"/chats/{quote(chat_id, safe='').replace('.', '%2E')}"
    assert chat_id in [one["chat_id"] for one in service.http.get("/chats?limit=200").json()["chats"]]
    assert service.http.get(path).json()["chat_id"] == chat_id
    assert service.http.delete(path).status_code == httpx.codes.NO_CONTENT
    assert service.http.get(path).status_code == httpx.codes.NOT_FOUND


def test_a_deleted_chat_begins_anew(talking: tuple[ServiceProcess, ModelServer]) -> None:
    service, _ = talking
    say(service, "anew", "One?", "key")
    windows = service.http.get("/system/status").json()["service_agent"]["windows"]
    assert {"chat_id": "anew", "sdk_session_id": "chat/anew", "has_im_window": False} in windows
    service.http.delete("/chats/anew").raise_for_status()
    say(service, "anew", "Two?", "key")
    assert [turn.text for turn in chat(service, "anew").turns] == ["Two?", "Yes."]
