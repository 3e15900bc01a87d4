"""Messages and questions of a tool to the caller of one call."""

import asyncio

import pytest
from pydantic import JsonValue

from engine.calling.dialogues import Dialogues
from engine.runtimes.runtime import Asked
from engine.store.call_messages import CallMessages
from engine.store.database import Database
from toolagent.contracts.call_messages import CallMessage, Listener, LogLevel
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import McpSource, RemoteSource
from toolagent_service.calls.ways import may_ask

CALL = "call-00000001"
FORM = Asked("elicitation/create", {"message": "Which?", "requestedSchema": {"type": "object", "properties": {}}})


async def said_of(messages: CallMessages, count: int) -> tuple[CallMessage, ...]:
    """All messages, once there are this many."""
    async with asyncio.timeout(10):
        while len(said := await messages.after(CALL)) < count:  # noqa: ASYNC110 - others write them
            await asyncio.sleep(0)
    return said


async def test_only_what_is_heard_is_written_and_all_of_it_before_the_end(database: Database) -> None:
    messages = CallMessages(database)
    async with Dialogues(messages).of(CALL, Listener(progress=True, log_level=LogLevel.WARNING), 10) as dialogue:
        dialogue.progress(1, 2, "half")
        dialogue.log(LogLevel.INFO, None, "too quiet")
        dialogue.log(LogLevel.ERROR, "db", {"lost": True})
        dialogue.progress(2, 2, None)
    assert [(one.kind, one.payload) for one in await messages.after(CALL)] == [
        ("progress", {"progress": 1, "total": 2, "message": "half"}),
        ("log", {"level": "error", "logger": "db", "data": {"lost": True}}),
        ("progress", {"progress": 2, "total": 2, "message": None}),
    ]


async def test_nothing_is_written_for_a_caller_that_only_waits(database: Database) -> None:
    messages = CallMessages(database)
    async with Dialogues(messages).of(CALL, None, 10) as dialogue:
        dialogue.progress(1, 2, "half")
        dialogue.log(LogLevel.EMERGENCY, None, "!")
        assert await dialogue.ask([FORM]) == [{"result": {"action": "decline"}}]
        assert "error" in (await dialogue.ask([Asked("roots/list", {})]))[0]
    assert await messages.after(CALL) == ()


async def test_a_question_waits_for_its_answer_after_what_was_said_before(database: Database) -> None:
    messages = CallMessages(database)
    async with Dialogues(messages).of(CALL, Listener(progress=True, answers=("elicitation",)), 10) as dialogue:
        dialogue.progress(1, None, None)
        asking = asyncio.create_task(dialogue.ask([FORM]))
        said = await said_of(messages, 2)
        assert [one.kind for one in said] == ["progress", "question"]
        await messages.answer(CALL, 2, {"result": {"action": "accept", "content": {}}})
        assert await asking == [{"result": {"action": "accept", "content": {}}}]


async def test_a_caller_that_takes_forms_alone_is_sent_to_no_url(database: Database) -> None:
    messages = CallMessages(database)
    url = Asked("elicitation/create", {"mode": "url", "message": "Log in.", "url": "https://a.example", "elicitationId": "1"})
    async with Dialogues(messages).of(CALL, Listener(answers=("elicitation",)), 10) as dialogue:
        assert await dialogue.ask([url]) == [{"result": {"action": "decline"}}]
    assert await messages.after(CALL) == ()


async def test_questions_of_one_round_are_said_together_and_answered_in_any_order(database: Database) -> None:
    messages = CallMessages(database)
    async with Dialogues(messages).of(CALL, Listener(answers=("elicitation", "roots")), 10) as dialogue:
        asked = [Asked("roots/list", {}, "where"), Asked("sampling/createMessage", {}, "what"), FORM]
        asking = asyncio.create_task(dialogue.ask(asked))
        said = await said_of(messages, 2)
        assert [one.payload.get("key") for one in said] == ["where", None]
        await messages.answer(CALL, 2, {"result": {"action": "cancel"}})
        await messages.answer(CALL, 1, {"result": {"roots": []}})
        where, what, which = await asking
    assert (where, which, "error" in what) == ({"result": {"roots": []}}, {"result": {"action": "cancel"}}, True)


async def test_a_question_that_nobody_answers_in_time_is_declined(database: Database) -> None:
    async with Dialogues(CallMessages(database)).of(CALL, Listener(answers=("elicitation",)), 0.05) as dialogue:
        assert await dialogue.ask([FORM]) == [{"result": {"action": "decline"}}]


async def test_a_model_of_ours_answers_for_who_has_none(database: Database) -> None:
    async def sample(call_id: str, number: int, params: dict[str, JsonValue]) -> dict[str, JsonValue]:
        return {"result": {"asked": [call_id, number, params["maxTokens"]]}}

    dialogues = Dialogues(CallMessages(database), sample)
    async with dialogues.of(CALL, None, 10) as dialogue:
        assert await dialogue.ask([Asked("sampling/createMessage", {"maxTokens": 7})]) == [{"result": {"asked": [CALL, 1, 7]}}]


async def test_a_flood_of_messages_is_cut(database: Database) -> None:
    messages = CallMessages(database)
    async with Dialogues(messages).of(CALL, Listener(log_level=LogLevel.DEBUG), 10) as dialogue:
        for _ in range(10_000):
            dialogue.log(LogLevel.INFO, None, "x")
        dialogue.log(LogLevel.INFO, None, "x" * 300_000)
    assert len(await messages.after(CALL)) == 256


@pytest.mark.parametrize(
    ("listens", "source", "is_so"),
    [
        (None, McpSource(tool_name="a", url="https://a.example/mcp"), False),
        (Listener(progress=True), McpSource(tool_name="a", url="https://a.example/mcp"), False),
        (Listener(answers=("roots",)), RemoteSource(remote_url="https://a.example"), False),
        (Listener(answers=("roots",)), McpSource(tool_name="a", command=("a",)), True),
    ],
)
def test_a_call_may_ask_whose_caller_answers_and_whose_tool_can(
    listens: Listener | None, source: McpSource | RemoteSource, *, is_so: bool
) -> None:
    assert may_ask(listens, ToolEntry(manifest=ToolManifest(tool_id="t", name="T"), sources=(source,))) is is_so
