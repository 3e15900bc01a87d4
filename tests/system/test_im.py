"""A conversation over IM with the real service, which is killed in the middle: one answer, and the notice that the tool is made."""

import asyncio
from pathlib import Path

import pytest

from tests.im.people import person
from tests.system.catalog import make_catalog
from tests.system.making_tasks import ended, rows, serving
from tests.system.test_chat import SCENARIO, WISH, chat
from tests.system.waiting import wait_until
from toolagent.contracts.im import ImMessage, ImType
from toolagent.testing.servers.im_server import ImServer

_A_FUNCTION = "SELECT 1 FROM tool_outcomes WHERE conversation_id LIKE 'chat:%'"
pytestmark = pytest.mark.timeout(400)


@pytest.mark.promise("im-answered-once")
async def test_a_tool_is_asked_for_over_im_and_the_window_is_told_that_it_is_there_though_the_service_is_killed(tmp_path: Path) -> None:
    with ImServer() as server, serving(tmp_path, make_catalog(tmp_path), SCENARIO, IM_URL=server.im_url) as (service, _):
        async with person(server) as alice:
            await alice.send(WISH, "wish over IM", message_id="wish", own_chat="hers")
            # In the middle: the message is acknowledged, a function was used, and its outcome not told yet.
            await asyncio.to_thread(wait_until, lambda: rows(service, _A_FUNCTION), "a function was used")
            await asyncio.to_thread(service.kill)
            await asyncio.to_thread(service.start)
            reply = await alice.next(ImType.REPLY)
            ((task_id,),) = rows(service, "SELECT task_id FROM tasks")
            assert reply.content == f"The task {task_id} makes it."
            await asyncio.to_thread(ended, service, str(task_id))
            notice = await alice.next(ImType.NOTICE)
            assert "`tally` can be called now" in notice.content
            assert (notice.sender_chat_id, notice.receiver_chat_id) == ("wish over IM", "hers")
            await alice.send("Are you there?", "another", message_id="again")
            assert await alice.replies(1) == ["Yes."]
        assert [turn.text for turn in chat(service, "wish over IM").turns] == [WISH, reply.content, notice.content]
        status = service.http.get("/system/status").json()["service_agent"]
        assert (status["im_connected"], status["im"]["waiting"]) == (True, 0)
        assert {"chat_id": "wish over IM", "sdk_session_id": "chat/wish over IM", "has_im_window": True} in status["windows"]
        assert len(kinds(server.messages_to("alice"), ImType.NOTICE)) == 1


def kinds(messages: tuple[ImMessage, ...], kind: ImType) -> set[str]:
    return {message.id for message in messages if message.type == kind}
