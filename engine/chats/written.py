"""Streams the text of a model to followers of the chat."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Protocol

from engine.roles.heard import Heard
from toolagent.contracts.chats import Chunk
from toolagent.core.failures import StoreUnavailableError
from toolagent.core.texts import well_formed

_EVERY_S = 0.2
"""Each write is a transaction, and people do not read faster."""


class Chunks(Protocol):
    """`engine.store.chats.ChatTable` is one."""

    async def chat_of(self, conversation_id: str) -> str | None: ...
    async def add_chunks(self, conversation_id: str, chunks: Sequence[Chunk]) -> None: ...


@asynccontextmanager
async def written_down(chunks: Chunks, conversation_id: str, *, is_again: bool) -> AsyncGenerator[Heard]:
    """Gives the listener to the text. All of it is written at the end. `is_again`: text of an earlier attempt does not count."""
    writing = _Writing(chunks, conversation_id, is_again=is_again)
    try:
        yield writing
    finally:
        await writing.rest()
        await writing.write()


class _Writing(Heard):
    def __init__(self, chunks: Chunks, conversation_id: str, *, is_again: bool) -> None:
        self._chunks, self._conversation_id, self._is_again = chunks, conversation_id, is_again
        self._pieces: list[str] = []
        self._is_over = asyncio.Event()
        self._task = asyncio.create_task(self._run(), name=f"write what {conversation_id} says")

    def hear(self, text: str) -> None:
        self._pieces.append(text)

    async def rest(self) -> Sequence[Chunk]:
        self._is_over.set()
        await self._task
        return self._untold()

    def was_told(self) -> None:
        self._pieces, self._is_again = [], False

    async def write(self) -> None:
        if told := self._untold():
            self._pieces = []
            # Followers miss a piece, but the answer has it.
            with suppress(StoreUnavailableError):
                await self._chunks.add_chunks(self._conversation_id, told)
                self._is_again = False

    async def _run(self) -> None:
        while not self._is_over.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._is_over.wait(), _EVERY_S)
            if not self._is_over.is_set():
                await self.write()

    def _untold(self) -> Sequence[Chunk]:
        if not self._pieces:
            return ()
        text = Chunk(type="text", data=well_formed("".join(self._pieces)))
        return (Chunk(type="restart"), text) if self._is_again else (text,)
