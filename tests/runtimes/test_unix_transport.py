"""Requests to a tool at its unix socket: which connections are used again, and how a misbehaving peer affects a call."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from engine.network.unix_transport import UnixTransport
from engine.runtimes.failures import CallFailed, NotSent
from engine.runtimes.http.exchange import HttpExchange, Target
from tests.runtimes.conftest import request_of
from toolagent.contracts.calls import ErrorType

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n42"
Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Peer:
    """A tool at `path`. `answer` says what follows each request; `left` is set when a connection ends."""

    path: Path
    answer: Answer
    asked: int = 0
    connections: int = 0
    left: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def target(self) -> Target:
        return Target(f"unix:{self.path}", "GET", "/", {})

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                self.asked += 1
                await self.answer(writer)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client left
        finally:
            self.left.set()
            writer.close()


async def well(writer: asyncio.StreamWriter) -> None:
    writer.write(OK)


def then_closed(said: bytes) -> Answer:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        writer.close()

    return answer


def left_open(said: bytes) -> Answer:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(said)

    return answer


@pytest_asyncio.fixture
async def peer(tmp_path: Path) -> AsyncGenerator[Peer]:
    peer = Peer(tmp_path / "tool.sock", well)
    async with await asyncio.start_unix_server(peer.serve, peer.path):
        yield peer


@pytest_asyncio.fixture
async def client(peer: Peer) -> AsyncGenerator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=UnixTransport(str(peer.path), 0.2), base_url="http://tool") as client:
        yield client


async def failing(http: HttpExchange, peer: Peer, timeout_s: float = 5.0) -> CallFailed:
    with pytest.raises(CallFailed) as caught:
        await http.call(peer.target, request_of(timeout_s))
    return caught.value


async def test_a_connection_is_used_again(http: HttpExchange, peer: Peer) -> None:
    assert [await http.call(peer.target, request_of()) for _ in range(3)] == [42, 42, 42]
    assert (peer.connections, peer.asked) == (1, 3)


async def test_calls_at_once_have_a_connection_each(http: HttpExchange, peer: Peer) -> None:
    assert await asyncio.gather(*(http.call(peer.target, request_of()) for _ in range(8))) == [42] * 8
    assert peer.connections == 8


async def test_an_exchange_without_kept_connections_uses_none_again(http: HttpExchange, peer: Peer) -> None:
    alone = http.unconnected()
    assert [await alone.call(peer.target, request_of()) for _ in range(2)] == [42, 42]
    assert peer.connections == 2
    await alone.aclose()


async def test_a_connection_that_was_idle_for_too_long_is_not_used_again(client: httpx.AsyncClient, peer: Peer) -> None:
    await client.get("/")
    await asyncio.sleep(0.25)  # the time is the state
    await client.get("/")
    assert (peer.connections, peer.left.is_set()) == (2, True)


async def test_a_connection_that_the_tool_has_closed_is_not_used_again(http: HttpExchange, peer: Peer) -> None:
    peer.answer = then_closed(OK)
    assert [await http.call(peer.target, request_of()) for _ in range(2)] == [42, 42]
    assert (peer.connections, peer.asked) == (2, 2)


async def test_what_a_tool_says_unasked_is_no_answer_to_the_next_call(http: HttpExchange, peer: Peer) -> None:
    peer.answer = left_open(OK + OK.replace(b"42", b"13"))
    assert [await http.call(peer.target, request_of()) for _ in range(2)] == [42, 42]
    assert peer.connections == 2


async def test_what_a_tool_says_later_unasked_is_no_answer_either(http: HttpExchange, peer: Peer) -> None:
    async def twice(writer: asyncio.StreamWriter) -> None:
        writer.write(OK)
        asyncio.get_running_loop().call_later(0.05, writer.write, OK.replace(b"42", b"13"))

    peer.answer = twice
    assert await http.call(peer.target, request_of()) == 42
    await asyncio.sleep(0.1)  # until it has come
    assert await http.call(peer.target, request_of()) == 42
    assert peer.connections == 2


@pytest.mark.promise("only-connect-errors-are-unsent")
async def test_a_kept_connection_that_breaks_is_not_asked_again(http: HttpExchange, peer: Peer) -> None:
    assert await http.call(peer.target, request_of()) == 42
    peer.answer = then_closed(b"")
    failure = await failing(http, peer)
    assert (failure.error_type, failure.outcome, peer.asked) == (ErrorType.EXECUTION_ERROR, "unknown", 2)


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n42",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n42\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000,
    ],
)
async def test_half_an_answer_and_none_of_http_leave_the_outcome_unknown(http: HttpExchange, peer: Peer, said: bytes) -> None:
    peer.answer = then_closed(said)
    failure = await failing(http, peer)
    assert (failure.error_type, failure.outcome, peer.asked) == (ErrorType.EXECUTION_ERROR, "unknown", 1)


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.0 200 OK\r\n\r\n42",
        b"HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n" + OK,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n4\r\n1\r\n2\r\n0\r\n\r\n",
    ],
)
async def test_an_answer_may_end_with_the_connection_come_in_chunks_or_be_announced(http: HttpExchange, peer: Peer, said: bytes) -> None:
    peer.answer = then_closed(said)
    assert await http.call(peer.target, request_of()) == 42


async def test_an_answer_without_an_end_is_read_up_to_the_limit(http: HttpExchange, peer: Peer) -> None:
    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"1" * 65_536)
            await writer.drain()

    peer.answer = endless
    failure = await failing(http, peer)
    assert (failure.error_type, failure.details["limit"]) == (ErrorType.OUTPUT_VALIDATION_ERROR, http.max_result_bytes)
    await asyncio.wait_for(peer.left.wait(), 60)


async def test_an_answer_that_nobody_reads_on_is_held_back(client: httpx.AsyncClient, peer: Peer) -> None:
    said = b"1" * 8_000_000
    peer.answer = left_open(b"HTTP/1.1 200 OK\r\nContent-Length: 8000000\r\n\r\n" + said)
    async with client.stream("GET", "/") as response:
        pieces = response.aiter_raw()
        first = await anext(pieces)
        await asyncio.sleep(0.1)  # all that would come has come
        waiting = await anext(pieces)
        assert len(waiting) < 2_000_000
        assert first + waiting + b"".join([piece async for piece in pieces]) == said


async def test_a_tool_that_answers_before_it_has_read_all_is_heard(client: httpx.AsyncClient, peer: Peer) -> None:
    async def body() -> AsyncGenerator[bytes]:
        for _ in range(1_000):
            yield b"x" * 65_536
            await asyncio.sleep(0)

    peer.answer = then_closed(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
    assert (await client.post("/", content=body())).status_code == 413


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n4"])
async def test_a_call_that_is_cancelled_closes_its_connection(http: HttpExchange, peer: Peer, said: bytes) -> None:
    peer.answer = left_open(said)
    failure = await failing(http, peer, timeout_s=0.2)
    assert failure.error_type is ErrorType.TIMEOUT
    await asyncio.wait_for(peer.left.wait(), 60)


async def test_forgetting_a_tool_breaks_what_is_open_to_it(http: HttpExchange, peer: Peer) -> None:
    begun = asyncio.Event()

    async def half(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.0 200 OK\r\n\r\n4")
        begun.set()

    peer.answer = half
    calling = asyncio.ensure_future(failing(http, peer))
    await begun.wait()
    await http.forget(peer.target.endpoint)
    assert (await calling).outcome == "unknown"
    await asyncio.wait_for(peer.left.wait(), 60)


@pytest.mark.promise("only-connect-errors-are-unsent")
async def test_a_socket_where_nobody_listens_was_not_sent_to(http: HttpExchange, peer: Peer) -> None:
    peer.path.unlink()
    with pytest.raises(NotSent) as caught:
        await http.call(peer.target, request_of())
    assert (caught.value.error_type, peer.asked) == (ErrorType.UNAVAILABLE, 0)


async def test_after_a_large_answer_that_was_there_before_it_was_read_the_connection_answers_again(peer: Peer) -> None:
    size = 300 * 1024
    peer.answer = left_open(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size)
    async with httpx.AsyncClient(transport=UnixTransport(str(peer.path), 60.0)) as client:
        for _ in range(2):
            async with asyncio.timeout(60), client.stream("GET", "http://tool/") as response:
                await asyncio.sleep(0.2)  # all of it comes
                assert len(await response.aread()) == size
    assert peer.connections == 1
