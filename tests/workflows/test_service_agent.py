"""A conversation on a real server: its order, its runs, its limits."""

import asyncio
import gc
import uuid
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from temporalio import workflow
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowUpdateFailedError, WorkflowUpdateStage
from temporalio.exceptions import ApplicationError

from tests.workflows.chat_paths import Archive, life_of, message, said, served
from tests.workflows.stage import AnyHandle, Stage, reset
from toolagent.client import chats as client_chats
from toolagent.client import names
from toolagent.client.chats import Chats
from toolagent.client.failures import ChatRefusedError
from toolagent.client.patience import described as of_known
from toolagent.contracts.chats import AnsweredBy, ChatMessage, ChatReply
from toolagent.core.chats import CHAT_CLOSED
from toolagent_service.contracts.chats import WRITING_DOWN_S, ChatLife
from workflows.chats import options
from workflows.chats.service_agent import ServiceAgent

_CALLERS, _MESSAGES = 3, 24
_WAITING = 8
_PATIENCE_S = 60


def stage_of(temporal: Client) -> Stage:
    return Stage(temporal, f"chat-{uuid.uuid4().hex[:8]}")


async def begun(stage: Stage, life: ChatLife) -> AnyHandle:
    return await stage.start(names.SERVICE_AGENT, life, workflow_id=names.chat_workflow(stage.queue))


async def test_no_message_is_lost_repeated_or_overtaken_though_each_few_go_to_another_run(temporal: Client) -> None:
    stage, archive = stage_of(temporal), Archive()
    async with stage.workers(archive.steps):
        handle = await begun(stage, life_of(stage, events=20))

        async def caller(number: int) -> None:
            for place in range(number, _MESSAGES, _CALLERS):
                await said(handle, message(stage, f"{place}", f"msg-{place}"))

        await asyncio.gather(*map(caller, range(_CALLERS)))
        # Another run answers from the archive what an earlier one has answered.
        assert (await said(handle, message(stage, "0", "msg-0"))).message_id == "msg-0"
        state = await handle.query(names.PROGRESS, result_type=ChatLife)
        await handle.cancel()
        await handle.result()
    assert Counter(archive.order) == dict.fromkeys(map(str, range(_MESSAGES)), 1)
    for number in range(_CALLERS):
        own = [place for place in map(int, archive.order) if place % _CALLERS == number]
        assert own == sorted(own)
    assert (state.runs > 2, state.turn_count, archive.rested) == (True, 2 * _MESSAGES, 1)


async def test_a_message_is_begun_when_the_one_before_it_is_answered(temporal: Client) -> None:
    stage, archive = stage_of(temporal), Archive()
    archive.may_answer.clear()
    async with stage.workers(archive.steps), served(temporal):
        handle = await begun(stage, life_of(stage))
        both = [
            await handle.start_update(names.SAY, message(stage, "model", key), wait_for_stage=WorkflowUpdateStage.ACCEPTED)
            for key in ("msg-1", "msg-2")
        ]
        archive.may_answer.set()
        for one in both:
            await one.result()
        await handle.cancel()
        await handle.result()
    assert archive.done == [(what, key) for key in ("msg-1", "msg-2") for what in ("begun", "ended")]


async def test_more_messages_than_may_wait_are_refused_and_may_come_again(temporal: Client) -> None:
    stage, archive = stage_of(temporal), Archive()
    archive.may_answer.clear()
    async with stage.workers(archive.steps):
        handle = await begun(stage, life_of(stage))
        all_of_them = [message(stage, f"{number}", f"msg-{number}") for number in range(_WAITING + 1)]
        answers = [asyncio.create_task(handle.execute_update(names.SAY, one, id=one.message_id)) for one in all_of_them]
        (refused,), others = await asyncio.wait(answers, timeout=_PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
        archive.may_answer.set()
        await asyncio.gather(*others)
        again = all_of_them[answers.index(refused)]
        assert (await said(handle, again)).message_id == again.message_id
        await handle.cancel()
        await handle.result()
    failure = refused.exception()
    assert isinstance(failure, WorkflowUpdateFailedError)
    assert isinstance(failure.cause, ApplicationError)
    assert failure.cause.type == names.CHAT_FULL


async def test_whoever_leaves_before_the_answer_leaves_no_complaint_behind(temporal: Client) -> None:
    """No worker serves the queue of the front door here."""
    chat_id, complaints = f"left-{uuid.uuid4().hex[:8]}", list[object]()
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    asked = asyncio.create_task(Chats(temporal).say(ChatMessage(chat_id=chat_id, message="hello", message_id="msg-1")))
    async with asyncio.timeout(_PATIENCE_S):
        query = f"WorkflowId = '{names.chat_workflow(chat_id)}'"
        while not [one async for one in temporal.list_workflows(query)]:  # noqa: ASYNC110 - it happens on the server
            await asyncio.sleep(0.1)
    asked.cancel()
    await asyncio.wait((asked,))
    is_cancelled = asked.cancelled()
    del asked
    await asyncio.sleep(0)
    gc.collect()
    loop.set_exception_handler(None)
    await temporal.get_workflow_handle(names.chat_workflow(chat_id)).terminate()
    assert (is_cancelled, complaints) == (True, [])


async def test_a_chat_is_begun_where_its_steps_wait_so_that_its_worker_begins_them_without_asking(temporal: Client) -> None:
    chat_id = f"begun-{uuid.uuid4().hex[:8]}"
    handle = temporal.get_workflow_handle(names.chat_workflow(chat_id))
    asked = asyncio.create_task(Chats(temporal).say(ChatMessage(chat_id=chat_id, message="hello", message_id="msg-1")))
    async with asyncio.timeout(_PATIENCE_S):
        while (described := await of_known(handle)) is None:  # noqa: ASYNC110 - it happens on the server
            await asyncio.sleep(0.1)
    asked.cancel()
    await asyncio.gather(asked, return_exceptions=True)
    await handle.terminate()
    steps = (options.answer_turn(1, 1, timedelta(1)), options.use_tool("use"), options.await_task("task"))
    assert {step["task_queue"] for step in steps} == {described.task_queue}


@pytest.mark.parametrize("limit", ["start_to_close_timeout", "schedule_to_close_timeout"])
def test_a_turn_that_comes_at_the_end_of_its_time_can_still_be_written_down(limit: str) -> None:
    over = timedelta(minutes=1)
    asked, answered = ({**how(1, 1, over)}[limit] for how in (options.ask_model, options.answer_turn))
    assert (asked, answered) == (over, over + timedelta(seconds=WRITING_DOWN_S))


async def test_the_same_message_twice_at_once_is_answered_once_and_anew_when_it_was_forgotten(temporal: Client) -> None:
    stage, archive, chats = stage_of(temporal), Archive(), Chats(temporal)
    archive.may_answer.clear()
    async with stage.workers(archive.steps):
        handle = await begun(stage, life_of(stage))
        both = [asyncio.create_task(chats.say(message(stage, "Hello."))) for _ in range(2)]
        await asyncio.wait_for(archive.reached.wait(), _PATIENCE_S)
        archive.may_answer.set()
        first, second = await asyncio.gather(*both)
        told_once = archive.order.copy()
        archive.said.clear()
        await chats.say(message(stage, "Bye."))
        await handle.cancel()
        await handle.result()
    assert (first, told_once, archive.order) == (second, ["Hello."], ["Hello.", "Bye."])


async def test_a_chat_that_is_closed_while_it_ends_a_run_gives_its_last_answer(temporal: Client) -> None:
    """Otherwise the client would send the message again, and open the deleted chat again."""
    stage, archive = stage_of(temporal), Archive()
    archive.may_answer.clear()
    async with stage.workers(archive.steps), served(temporal):
        handle = await begun(stage, life_of(stage, events=10))
        texts = {"Hello.": "msg-1", "model waits": "msg-2"}
        first, last = [
            await handle.start_update(names.SAY, message(stage, *one), wait_for_stage=WorkflowUpdateStage.ACCEPTED, result_type=ChatReply)
            for one in texts.items()
        ]
        archive.may_answer.set()
        await first.result()
        await handle.cancel()
        reply = await last.result()
        await handle.result()
    assert ("closed" in reply.response, archive.order, archive.rested) == (True, [*texts], 1)


async def test_a_message_whose_chat_is_deleted_by_force_is_not_said_again(temporal: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would open the chat again, and its model would be paid."""
    monkeypatch.setattr(client_chats, "_CLOSING_S", 0)
    stage, archive, chats = stage_of(temporal), Archive(), Chats(temporal)
    async with stage.workers(archive.steps), served(temporal):
        handle = await begun(stage, life_of(stage))
        asked = asyncio.create_task(chats.say(message(stage, "model waits")))
        async with asyncio.timeout(_PATIENCE_S):
            while not (await handle.describe()).raw_description.pending_activities:  # noqa: ASYNC110 - it happens on the server
                await asyncio.sleep(0.1)
        await chats.close(stage.queue)
        reply = await asyncio.wait_for(asked, _PATIENCE_S)
    newest = await temporal.get_workflow_handle(handle.id).describe()
    assert (reply.error, newest.status) == (CHAT_CLOSED, WorkflowExecutionStatus.TERMINATED)


async def test_a_message_whose_chat_is_reset_has_the_answer_of_the_new_run(temporal: Client) -> None:
    """The old run is terminated, like that of a chat that is deleted by force."""
    stage, archive = stage_of(temporal), Archive()
    async with stage.workers(archive.steps):
        handle = await begun(stage, life_of(stage))
        asked = asyncio.create_task(Chats(temporal).say(message(stage, "model")))
        async with asyncio.timeout(_PATIENCE_S):
            while not (await handle.describe()).raw_description.pending_activities:  # noqa: ASYNC110 - it happens on the server
                await asyncio.sleep(0.1)
        await reset(temporal, handle)
        async with served(temporal):
            reply = await asyncio.wait_for(asked, _PATIENCE_S)
        await temporal.get_workflow_handle(handle.id).terminate()
    assert (reply.error, reply.answered_by) == ("", AnsweredBy.MODEL)


async def test_a_run_that_a_worker_let_go_of_in_an_answer_is_closed_without_a_complaint(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(workflow, "now", lambda: datetime.now(UTC))
        agent: Any = ServiceAgent()
    await agent._turn.acquire()  # by an answer before it
    saying = agent.say(ChatMessage(chat_id="chat", message="Hello.", message_id="msg-1").model_dump(mode="json"))
    saying.send(None)
    saying.close()
    assert agent._waiting == 0


async def test_a_chat_whose_id_is_as_long_as_may_be_is_answered(temporal: Client) -> None:
    stage, name = stage_of(temporal), uuid.uuid4().hex[:8]
    chat_id = "😀" * (200 - len(name)) + name
    async with stage.workers(Archive().steps):
        handle = await stage.start(names.SERVICE_AGENT, ChatLife(chat_id=chat_id), workflow_id=names.chat_workflow(chat_id))
        reply = await Chats(temporal).say(ChatMessage(chat_id=chat_id, message="Hello.", message_id="msg-1"))
        await handle.cancel()
        await handle.result()
    assert reply.chat_id == chat_id


async def test_what_temporal_does_not_take_is_refused_and_says_why(temporal: Client) -> None:
    too_long = ChatMessage.model_construct(chat_id="x" * 2_000, message="Hello.", message_id="msg-1")
    with pytest.raises(ChatRefusedError) as refused:
        await Chats(temporal).say(too_long)
    assert refused.value.type == "validation_error"
