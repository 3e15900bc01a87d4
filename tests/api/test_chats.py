"""Messages to conversations: refusals, and what is shown."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import quote

import pytest
from pydantic import JsonValue
from starlette.responses import StreamingResponse

from api.chats import followed
from api.errors import Refusal
from api.views.event_streams import EventStreams
from engine.store.chats import ChatTable
from engine.store.database import Database
from tests.api.conftest import House
from toolagent.client import names
from toolagent.client.failures import ChatRefusedError, ChatUnreachableError
from toolagent.contracts.chats import AnsweredBy, ChatEvent, ChatRole, ChatTurn
from toolagent.core.chats import message_id_for

BAD: dict[str, tuple[JsonValue, int, str]] = {
    "nothing said": ({"message": "", "chat_id": "a"}, 422, "message"),
    "only spaces": ({"message": " \n", "chat_id": "a"}, 422, "message"),
    "a NUL": ({"message": "a\0b", "chat_id": "a"}, 422, "message"),
    "no chat": ({"message": "Hello."}, 422, "chat_id"),
    "an empty id": ({"message": "Hello.", "chat_id": ""}, 422, "chat_id"),
    "a long id": ({"message": "Hello.", "chat_id": "x" * 201}, 422, "chat_id"),
    "a control character": ({"message": "Hello.", "chat_id": "a\nb"}, 422, "chat_id"),
    "another field": ({"message": "Hello.", "chat_id": "a", "model": "m"}, 422, "model"),
    "too large": ({"message": "x" * 65_537, "chat_id": "a"}, 413, "message"),
}


async def answered(house: House, chat_id: str, text: str, key: str) -> str:
    """Answers as the workflow does."""
    message_id = message_id_for(chat_id, key)
    await house.dependencies.chats.say(chat_id, message_id, text)  # pyright: ignore[reportAttributeAccessIssue]  # the real table
    at = datetime.now(UTC)
    answer = ChatTurn(number=0, role=ChatRole.ASSISTANT, text="Yes.", at=at, message_id=message_id, answered_by=AnsweredBy.RULES)
    await house.dependencies.chats.answer(chat_id, answer)  # pyright: ignore[reportAttributeAccessIssue]
    return message_id


@pytest.mark.parametrize("what", BAD)
async def test_what_cannot_be_said_is_refused_and_names_its_field(house: House, what: str) -> None:
    body, status, field = BAD[what]
    answer = await house.http.post("/chat", json=body)
    assert answer.status_code == status, answer.text
    assert [error["field"] for error in answer.json()["errors"]] == [field]
    assert house.client.chats.said == {}


async def test_a_message_of_a_megabyte_is_refused_before_it_is_read(house: House) -> None:
    answer = await house.http.post("/chat", json={"message": "x" * 1_048_576, "chat_id": "a"})
    assert (answer.status_code, answer.json()["type"]) == (413, "body_too_large")


@pytest.mark.parametrize(
    ("failure", "status", "kind"),
    [
        (ChatUnreachableError("Temporal does not answer."), 503, "unavailable"),
        (ChatRefusedError(names.CHAT_FULL, "8 wait."), 429, "rejected"),
        (ChatRefusedError("execution_error", "A step failed."), 503, "unavailable"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_message_that_is_not_taken_has_its_status(house: House, failure: Exception, status: int, kind: str, stream: bool) -> None:
    house.client.chats.failure = failure
    answer = await house.http.post("/chat", json={"message": "Hello.", "chat_id": "a", "stream": stream})
    assert (answer.status_code, answer.json()["type"], answer.headers["Retry-After"]) == (status, kind, "1")


@pytest.mark.parametrize("stream", [False, True])
async def test_the_same_key_is_the_same_message_and_not_other_words(house: House, stream: bool) -> None:
    answers = [
        await house.http.post("/chat", json={"message": "Hello.", "chat_id": "a"}, headers={"Idempotency-Key": "k"}) for _ in range(2)
    ]
    assert answers[0].json() == answers[1].json()
    assert len(house.client.chats.said) == 1
    await answered(house, "a", "Hello.", "k")
    other = await house.http.post("/chat", json={"message": "Bye.", "chat_id": "a", "stream": stream}, headers={"Idempotency-Key": "k"})
    assert (other.status_code, other.json()["type"]) == (409, "idempotency_conflict")


@pytest.mark.parametrize("chat_id", ["a/b", "a/b/events", "100%2F", "用户", " "])
async def test_ids_are_percent_encoded_in_paths(house: House, chat_id: str) -> None:
    message_id = await answered(house, chat_id, "Hello.", "k")
    path = f"/chats/{quote(chat_id, safe='')}"
    shown = (await house.http.get(path)).json()
    assert (shown["chat_id"], [turn["message_id"] for turn in shown["turns"]]) == (chat_id, [message_id] * 2)
    assert (await house.http.delete(path)).status_code == 204
    assert house.client.chats.closed == [chat_id]
    assert (await house.http.get(f"{path}/events")).json()["type"] == "chat_not_found"


async def test_paths_that_are_no_chat_say_so(house: House) -> None:
    assert [
        (await house.http.get(path)).status_code for path in ("/chats/a%00b", "/chats/%ff", f"/chats/{'x' * 201}", "/chats/a/b", "/chats/a")
    ] == [422, 422, 422, 404, 404]


async def test_turns_and_chats_come_in_pages(house: House) -> None:
    for number in range(3):
        await answered(house, "a", f"Number {number}.", f"k{number}")
    await answered(house, "b", "Hello.", "k")
    page = (await house.http.get("/chats/a?limit=4")).json()
    assert ([turn["number"] for turn in page["turns"]], page["before"]) == ([3, 4, 5, 6], 3)
    first = (await house.http.get("/chats/a?limit=4&before=3")).json()
    assert ([turn["number"] for turn in first["turns"]], first["before"]) == ([1, 2], None)
    newest = (await house.http.get("/chats?limit=1")).json()
    assert ([chat["chat_id"] for chat in newest["chats"]], newest["next"]) == (["b"], "b")
    assert [chat["chat_id"] for chat in (await house.http.get("/chats?before=b")).json()["chats"]] == ["a"]
    assert (await house.http.get("/chats?before=c")).status_code == 422
    assert (await house.http.get("/chats/a?before=9223372036854775808")).status_code == 422


async def test_events_are_gone_on_with_from_where_they_were(house: House) -> None:
    await answered(house, "a", "Hello.", "k")
    refused = await house.http.get("/chats/a/events", headers={"Last-Event-ID": "5"})
    assert [error["field"] for error in refused.json()["errors"]] == ["Last-Event-ID"]
    stream = await house.http.post("/chat", json={"message": "Hello.", "chat_id": "a", "stream": True}, headers={"Idempotency-Key": "k"})
    assert [line for line in stream.text.splitlines() if line.startswith(("event:", "id:"))] == [
        "event: chunk",
        "id: 3",
        "event: done",
        "id: 4",
    ]


class Looks(ChatTable):
    """Counts looks at a chat."""

    count = 0

    async def events_after(self, chat_id: str, position: int, *, limit: int = 1) -> tuple[ChatEvent, ...]:
        self.count += 1
        return await super().events_after(chat_id, position, limit=limit)


async def test_a_chat_in_which_nothing_happens_is_looked_at_less_and_less_often(house: House, database: Database) -> None:
    await answered(house, "a", "Hello.", "k")
    chats, stopping = Looks(database), asyncio.Event()
    stream = await followed(replace(house.dependencies, chats=chats), "a", "4", EventStreams(stopping))
    assert isinstance(stream, StreamingResponse)
    asyncio.get_running_loop().call_later(1.5, stopping.set)
    async for _ in stream.body_iterator:
        pass
    assert chats.count <= 6


async def test_more_streams_than_there_may_be_are_refused_until_one_ends(house: House) -> None:
    await answered(house, "a", "Hello.", "k")
    stopping = asyncio.Event()
    streams = EventStreams(stopping, most=1)
    first = await followed(house.dependencies, "a", None, streams)
    assert isinstance(first, StreamingResponse)
    events = aiter(first.body_iterator)
    await anext(events)
    with pytest.raises(Refusal) as refused:
        await followed(house.dependencies, "a", None, streams)
    assert (refused.value.kind, refused.value.headers) == ("unavailable", {"Retry-After": "5"})
    stopping.set()
    async for _ in events:
        pass
    assert isinstance(await followed(house.dependencies, "a", None, streams), StreamingResponse)


async def test_the_service_at_a_glance_shows_the_chats_that_are_open(house: House) -> None:
    await answered(house, "a", "Hello.", "k")
    told = (await house.http.get("/system/status")).json()["service_agent"]
    assert (told["total_windows"], [window["chat_id"] for window in told["windows"]]) == (1, ["a"])
