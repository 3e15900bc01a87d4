"""The timer that ends what nobody uses, and the book that may be away."""

import asyncio

import pytest

from engine.runtimes.docker.book import BufferedContainerBook, gone
from engine.runtimes.docker.unused import UnusedTimer
from engine.runtimes.failures import StartFailed
from tests.docker.conftest import Book, eventually
from toolagent.contracts.calls import ErrorType
from toolagent.core.failures import StoreUnavailableError
from toolagent_service.contracts.containers import ContainerInfo

ONE, OTHER = (ContainerInfo(container_id=name, tool_id="boxed", image="agent-sandbox:latest") for name in ("one", "other"))


@pytest.mark.parametrize(
    "failure",
    [StoreUnavailableError("away"), OSError(28, "No space left on device"), StartFailed(ErrorType.UNAVAILABLE, "no engine"), KeyError("x")],
)
async def test_what_could_not_be_ended_keeps_nobody_and_is_tried_again(failure: Exception) -> None:
    there = {"bad": "bad", "used": "used", "good": "good"}
    tries: list[str] = []

    async def end(name: str) -> None:
        tries.append(name)
        if tries.count("bad") < 3 and name == "bad":
            raise failure
        del there[name]

    timer = UnusedTimer(0.04, there, lambda name: name != "used", end)
    timer.start()
    timer.start()
    try:
        await eventually(lambda: set(there) == {"used"})
    finally:
        timer.stop()
    assert tries == ["bad", "good", "bad", "bad"]


async def test_what_is_used_again_while_another_one_ends_stays() -> None:
    there, used = {"first": "first", "second": "second"}, set[str]()

    async def end(name: str) -> None:
        used.add("second")
        await asyncio.sleep(0)
        del there[name]

    timer = UnusedTimer(0.04, there, lambda name: name not in used, end)
    timer.start()
    try:
        await eventually(lambda: "first" not in there)
    finally:
        timer.stop()
    assert set(there) == {"second"}


async def test_what_a_book_that_was_away_was_not_told_it_is_told_with_the_next(book: Book) -> None:
    patient = BufferedContainerBook(book)
    book.away = 2
    await patient.note(ONE)
    last = gone(ONE)
    await patient.note(last)
    assert book.noted == []
    await patient.note(OTHER)
    assert book.noted == [last, OTHER]
