"""The record of tool containers."""

import asyncio
from datetime import UTC, datetime
from typing import Protocol

import structlog

from toolagent.core.failures import StoreUnavailableError
from toolagent_service.contracts.containers import ContainerInfo, ContainerStatus

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class ContainerBook(Protocol):
    """Stores the last state of each container."""

    async def note(self, container: ContainerInfo) -> None: ...


class NoBook:
    """Stores nothing."""

    async def note(self, container: ContainerInfo) -> None:
        pass


class BufferedContainerBook:
    """Keeps notes while `book` is unavailable (StoreUnavailableError), and sends them with the next note. No container waits for it."""

    def __init__(self, book: ContainerBook) -> None:
        self._book = book
        self._pending: dict[str, ContainerInfo] = {}
        self._turn = asyncio.Lock()

    async def note(self, container: ContainerInfo) -> None:
        self._pending[container.container_id] = container
        async with self._turn:
            for one in [*self._pending.values()]:
                try:
                    await self._book.note(one)
                except StoreUnavailableError as error:
                    _log.warning("container_not_noted_yet", container=one.container_id, reason=str(error))
                    return
                if self._pending.get(one.container_id) is one:
                    del self._pending[one.container_id]


def gone(container: ContainerInfo) -> ContainerInfo:
    """The container's state, destroyed as of now."""
    return container.model_copy(update={"status": ContainerStatus.DESTROYED, "destroyed_at": datetime.now(UTC)})
