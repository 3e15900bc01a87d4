"""The IM test server: what it keeps, routes and refuses.

Its faults are tested with the client in `tests/im`.
"""

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.testing_servers.test_command_line import refused, running
from toolagent.contracts.im import ImMessage, ImType
from toolagent.testing.servers.im_faults import IM_FAULTS
from toolagent.testing.servers.im_server import ImServer


@pytest.fixture
def server() -> Iterator[ImServer]:
    with ImServer() as server:
        yield server


@asynccontextmanager
async def contact(url: str, name: str) -> AsyncGenerator[ClientConnection]:
    async with connect(f"{url}/?contact_id={name}", proxy=None) as socket:
        yield socket


async def said(socket: ClientConnection) -> ImMessage:
    return ImMessage.model_validate_json(await socket.recv())


async def test_a_message_waits_for_its_receiver_until_it_is_acknowledged(server: ImServer) -> None:
    async with contact(server.im_url, "alice") as alice:
        await alice.send(ImMessage(id="1", sender="somebody else", receiver="bob", content="hi").model_dump_json())
        ack = await said(alice)
        assert (ack.type, ack.id, ack.sender) == (ImType.ACK, "1", "bob")
        for _ in range(2):
            async with contact(server.im_url, "bob") as bob:
                message = await said(bob)
                assert (message.sender, message.content) == ("alice", "hi")
        async with contact(server.im_url, "bob") as bob:
            await said(bob)
            await bob.send(ImMessage(id="1", sender="bob", receiver="alice", type=ImType.ERROR, content="no").model_dump_json())
            assert (await said(alice)).content == "no"
    assert [message.content for message in server.messages_to("bob")] == ["hi"]


async def test_without_a_contact_id_the_connection_is_closed(server: ImServer) -> None:
    async with connect(server.im_url, proxy=None) as socket:
        with pytest.raises(ConnectionClosed, match="4400"):
            await socket.recv()


async def test_it_runs_alone_and_takes_messages_and_faults_over_http() -> None:
    with running("im", "--token", "opens", "--fault", "absent") as (url, _):
        address = f"{url.replace('http', 'ws')}/?contact_id=bob"
        for status in (503, 401):
            with pytest.raises(InvalidStatus, match=str(status)):
                await connect(address, proxy=None)
        sent = {"id": "1", "sender": "alice", "receiver": "bob", "content": "hi"}
        async with httpx.AsyncClient(base_url=url) as http:
            assert [(await http.post("/control/messages", json=body)).status_code for body in (sent, {"id": 1})] == [202, 400]
            told = [(await http.post("/control/faults", json={"kind": kind})).status_code for kind in ("twice", "no such fault")]
            assert told == [204, 400]
            async with connect(address, additional_headers={"Authorization": "Bearer opens"}, proxy=None) as bob:
                assert [(await said(bob)).id for _ in range(2)] == ["1", "1"]
                state = (await http.get("/control/state")).json()
            assert state["contacts"]["bob"] == {
                "connected": True, "waiting": 1, "connections": 1, "delivered": 2, "acknowledged": 0, "refused": 0,
            }  # fmt: skip
            assert [message["content"] for message in state["messages"]] == ["hi"]
            assert (await http.delete("/control/faults")).status_code == 204


def test_a_fault_that_there_is_not_is_refused_with_those_there_are() -> None:
    code, told = refused("im", "--fault", "rain")
    assert code == 2
    assert all(kind in told for kind in IM_FAULTS)
