"""The book of containers may be unavailable."""

from engine.runtimes.docker.book import BufferedContainerBook, gone
from tests.docker.conftest import Book
from toolagent_service.contracts.containers import ContainerInfo

ONE, OTHER = (ContainerInfo(container_id=name, tool_id="boxed", image="agent-sandbox:latest") for name in ("one", "other"))


async def test_what_a_book_that_was_away_was_not_told_it_is_told_with_the_next(book: Book) -> None:
    patient = BufferedContainerBook(book)
    book.away = 2
    await patient.note(ONE)
    last = gone(ONE)
    await patient.note(last)
    assert book.noted == []
    await patient.note(OTHER)
    assert book.noted == [last, OTHER]
