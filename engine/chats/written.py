"""What a model writes, told to those who follow the chat as it is written."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Protocol

from toolagent.contracts.chats import Chunk
from toolagent.core.failures import StoreUnavailableError
from toolagent.core.texts import well_formed

_EVERY_S = 0.2
"""Each writing is a transaction; nobody reads faster."""


class Chunks(Protocol):
    """`engine.store.chats.ChatTable` is one."""

    async def chat_of(self, conversation_id: str) -> str | None: ...
    async def add_chunks(self, conversation_id: str, chunks: Sequence[Chunk]) -> None: ...


@asynccontextmanager
async def written_down(chunks: Chunks, conversation_id: str, *, is_again: bool) -> AsyncGenerator[Callable[[str], None]]:
    """Gives what to call with each piece of text. `is_again`: an earlier attempt may have written some, which does not count."""
    writing = _Writing(chunks, conversation_id, is_again=is_again)
    task = asyncio.create_task(writing.run(), name=f"write what {conversation_id} says")
    try:
        yield writing.hear
    finally:
        writing.is_over.set()
        await task


class _Writing:
    def __init__(self, chunks: Chunks, conversation_id: str, *, is_again: bool) -> None:
        self._chunks, self._conversation_id, self._is_again = chunks, conversation_id, is_again
        self._pieces: list[str] = []
        self.is_over = asyncio.Event()

    def hear(self, text: str) -> None:
        self._pieces.append(text)

    async def run(self) -> None:
        while not self.is_over.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self.is_over.wait(), _EVERY_S)
            await self._write()

    async def _write(self) -> None:
        if not self._pieces:
            return
        text, self._pieces = "".join(self._pieces), []
        told = [Chunk(type="restart")] if self._is_again else []
        # Those who follow miss a piece; the answer has it.
        with suppress(StoreUnavailableError):
            await self._chunks.add_chunks(self._conversation_id, (*told, Chunk(type="text", data=well_formed(text))))
            self._is_again = False
