"""A caller that waits for a conversation or a session gets an error if no worker has it, and may ask again."""

import asyncio
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest
from temporalio.client import Client, Interceptor, OutboundInterceptor, QueryWorkflowInput
from temporalio.service import RetryConfig

from tests.workflows.chat_paths import Archive, life_of, message
from tests.workflows.session_paths import Provider, group_of
from tests.workflows.session_paths import life_of as session_of
from tests.workflows.test_service_agent import begun, stage_of
from toolagent.client import names
from toolagent.client.chats import Chats
from toolagent.client.failures import ChatUnreachableError, SessionUnreachableError
from toolagent.client.sessions import Sessions
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.sessions import SessionRun

_BOUND_S = 60
_VIEWERS = 60
"""To some of so many the server says that it is busy, and the SDK asks again."""
_LOOKS = 3
"""More than end the waiting where none of them is answered."""


@pytest.fixture(autouse=True)
def looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short pauses between looks, and patience with a worker: a busy one that is taken for gone fails a test."""
    monkeypatch.setattr("toolagent.client.updates.LOOK_S", 0.4)


@contextmanager
def no_worker() -> Generator[None]:
    """A look is given up soon, because no worker answers it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("toolagent.client.updates.ANSWER_S", 0.5)
        yield


class Looks(Interceptor):
    """Counts the looks that a worker has answered."""

    def __init__(self) -> None:
        self._answered = asyncio.Semaphore(0)

    def of(self, client: Client) -> Client:
        """The same client, with counted looks."""
        return Client(client.service_client, namespace=client.namespace, data_converter=client.data_converter, interceptors=[self])

    async def outlasted_by(self, asked: asyncio.Task[Any]) -> bool:
        """Whether it still waits after several looks."""
        answered = asyncio.gather(*(self._answered.acquire() for _ in range(_LOOKS)))
        await asyncio.wait((asked, answered), return_when=asyncio.FIRST_COMPLETED)
        return answered.done() and not asked.done()

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:
        return _Looking(next, self._answered)


class _Looking(OutboundInterceptor):
    def __init__(self, next: OutboundInterceptor, answered: asyncio.Semaphore) -> None:
        super().__init__(next)
        self._answered = answered

    async def query_workflow(self, input: QueryWorkflowInput) -> Any:
        answer = await super().query_workflow(input)
        self._answered.release()
        return answer


async def test_a_message_that_no_worker_takes_is_answered_once_when_it_is_said_again(temporal: Client) -> None:
    stage, archive, chats = stage_of(temporal), Archive(), Chats(temporal)
    handle = await begun(stage, life_of(stage))
    async with asyncio.timeout(_BOUND_S):
        with no_worker(), pytest.raises(ChatUnreachableError):
            await chats.say(message(stage, "Hello."))
        async with stage.workers(archive.steps):
            reply = await chats.say(message(stage, "Hello."))
            await handle.cancel()
            await handle.result()
    assert (reply.response, archive.order) == ("By rules.", ["Hello."])


async def test_an_answer_is_waited_for_while_a_worker_has_the_chat_and_no_longer(temporal: Client) -> None:
    stage, archive, looks = stage_of(temporal), Archive(), Looks()
    async with asyncio.timeout(_BOUND_S):
        async with stage.workers(archive.steps):
            handle = await begun(stage, life_of(stage))
            asked = asyncio.create_task(Chats(looks.of(temporal)).say(message(stage, "A model is asked.")))
            is_waiting = await looks.outlasted_by(asked)
        with no_worker(), pytest.raises(ChatUnreachableError):
            await asked
    await handle.terminate()
    assert is_waiting


async def test_a_run_in_a_session_is_waited_for_while_a_worker_has_the_session(temporal: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    stage, provider, looks = stage_of(temporal), Provider(), Looks()
    session_id = f"session-{stage.queue}"
    monkeypatch.setattr(names, "TASK_QUEUE", stage.queue)
    async with stage.workers(provider.steps), asyncio.timeout(_BOUND_S):
        await Sessions(temporal).open(session_of(group_of(), session_id).request)
        run = SessionRun(key="one", params={"lasts": True})
        asked = asyncio.create_task(Sessions(looks.of(temporal)).run("servers", session_id, run))
        is_waiting = await looks.outlasted_by(asked)
        await Sessions(temporal).stop("servers", session_id)
        result = await asked
    assert (is_waiting, result.error and result.error.type) == (True, ErrorType.CANCELLED)


async def test_a_session_that_no_worker_has_says_so(temporal: Client, temporal_address: str) -> None:
    """However long the SDK retries."""
    config = temporal.service_client.config
    stubborn = RetryConfig(max_elapsed_time_millis=1000 * 2 * _BOUND_S)
    client = await Client.connect(temporal_address, plugins=temporal.config()["plugins"], runtime=config.runtime, retry_config=stubborn)
    session_id, sessions = f"session-{uuid.uuid4().hex[:8]}", Sessions(client)
    with no_worker():
        async with asyncio.timeout(_BOUND_S):
            with pytest.raises(SessionUnreachableError):
                await sessions.open(session_of(group_of(), session_id).request)
            with pytest.raises(SessionUnreachableError):
                await sessions.run("servers", session_id, SessionRun(key="one"))
            views = await asyncio.gather(*(sessions.view("servers", session_id) for _ in range(_VIEWERS)), return_exceptions=True)
    assert {type(view) for view in views} == {SessionUnreachableError}
    await temporal.get_workflow_handle(names.session_workflow("servers", session_id)).terminate()
