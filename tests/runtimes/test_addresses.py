"""Name servers that do not answer delay only the requests that ask them."""

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from engine.network.addresses import bounded, resolve
from engine.network.proxy_refusal import Refused
from engine.network.proxy_rules import Rules
from engine.runtimes.failures import CallFailed
from engine.runtimes.http.destination import Destinations
from toolagent.contracts.calls import ErrorType


class Silent:
    """A name server that answers when the test releases it."""

    def __init__(self) -> None:
        self.asked = 0
        self.answering = asyncio.Event()

    async def __call__(self, host: str, port: int) -> Sequence[str]:  # noqa: ARG002 - as Resolve has it
        self.asked += 1
        await self.answering.wait()
        return ["1.1.1.1"]


async def test_names_are_looked_up_while_all_other_threads_are_busy() -> None:
    done = threading.Event()
    with ThreadPoolExecutor(1) as busy:
        asyncio.get_running_loop().set_default_executor(busy)
        waiting = asyncio.create_task(asyncio.to_thread(done.wait))
        await asyncio.sleep(0)
        try:
            assert await asyncio.wait_for(resolve("127.0.0.1", 80), 10) == ["127.0.0.1"]
        finally:
            done.set()
            await waiting


async def test_a_look_up_that_was_given_up_counts_until_it_ends() -> None:
    silent = Silent()
    look = bounded(silent, at_once=2, within_s=0.05)
    for _ in range(3):
        given_up = await asyncio.gather(*(look("a.test", 80) for _ in range(5)), return_exceptions=True)
        assert [type(one) for one in given_up] == [TimeoutError] * 5
    assert silent.asked == 2
    silent.answering.set()
    assert await look("a.test", 80) == ["1.1.1.1"]


async def test_who_asks_a_silent_name_server_keeps_nobody_else_waiting() -> None:
    silent = Silent()
    one, other = Rules(["*"], resolve=silent), Rules(["*"], resolve=silent)
    asking = [asyncio.create_task(one.addresses("a.test", 80)) for _ in range(100)]
    while silent.asked < 4:  # noqa: ASYNC110 - it tells nobody else
        await asyncio.sleep(0)
    another = asyncio.create_task(other.addresses("b.test", 80))
    async with asyncio.timeout(10):
        while silent.asked < 5:  # noqa: ASYNC110 - it tells nobody else
            await asyncio.sleep(0)
    assert silent.asked == 5
    silent.answering.set()
    await asyncio.gather(another, *asking)


async def test_that_a_name_server_did_not_answer_is_said() -> None:
    async def late(host: str, port: int) -> Sequence[str]:
        raise TimeoutError

    with pytest.raises(Refused) as refused:
        await Rules(["*"], resolve=late).addresses("a.test", 80)
    assert (refused.value.status, refused.value.error) == (504, "dns_timeout")
    with pytest.raises(CallFailed) as failed:
        await Destinations((), late).of(httpx.URL("http://a.test"))
    assert (failed.value.error_type, failed.value.details) == (
        ErrorType.EXECUTION_ERROR,
        {"cause": "dns", "host": "a.test", "no_such_host": False},
    )
