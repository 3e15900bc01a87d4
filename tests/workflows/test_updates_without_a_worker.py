"""Who waits for a conversation or a session is told when no worker has it, and may ask again."""

import asyncio
import uuid

import pytest
from temporalio.client import Client

from tests.workflows.chat_paths import Archive, life_of, message
from tests.workflows.session_paths import group_of
from tests.workflows.session_paths import life_of as session_of
from tests.workflows.test_service_agent import begun, stage_of
from toolagent.client import names
from toolagent.client.chats import Chats
from toolagent.client.failures import ChatUnreachableError, SessionUnreachableError
from toolagent.client.sessions import Sessions
from toolagent.contracts.sessions import SessionRun

_BOUND_S = 60


@pytest.fixture(autouse=True)
def looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolagent.client.updates.LOOK_S", 1.0)


async def test_a_message_that_no_worker_takes_is_answered_once_when_it_is_said_again(temporal: Client) -> None:
    stage, archive, chats = stage_of(temporal), Archive(), Chats(temporal)
    handle = await begun(stage, life_of(stage))
    async with asyncio.timeout(_BOUND_S):
        with pytest.raises(ChatUnreachableError):
            await chats.say(message(stage, "Hello."))
        async with stage.workers(archive.steps):
            reply = await chats.say(message(stage, "Hello."))
            await handle.cancel()
            await handle.result()
    assert (reply.response, archive.order) == ("By rules.", ["Hello."])


async def test_an_answer_is_waited_for_while_a_worker_has_the_chat_and_no_longer(temporal: Client) -> None:
    stage, archive = stage_of(temporal), Archive()
    async with asyncio.timeout(_BOUND_S):
        async with stage.workers(archive.steps):
            handle = await begun(stage, life_of(stage))
            asked = asyncio.create_task(Chats(temporal).say(message(stage, "A model is asked.")))
            await archive.reached.wait()
            _, waiting = await asyncio.wait((asked,), timeout=5)
        with pytest.raises(ChatUnreachableError):
            await asked
    await handle.terminate()
    assert waiting


async def test_a_session_that_no_worker_has_says_so(temporal: Client) -> None:
    session_id, sessions = f"session-{uuid.uuid4().hex[:8]}", Sessions(temporal)
    async with asyncio.timeout(_BOUND_S):
        with pytest.raises(SessionUnreachableError):
            await sessions.open(session_of(group_of(), session_id).request)
        with pytest.raises(SessionUnreachableError):
            await sessions.run("servers", session_id, SessionRun(key="one"))
    await temporal.get_workflow_handle(names.session_workflow("servers", session_id)).terminate()
