"""Where the containers of tools are remembered."""

import asyncio
from datetime import UTC, datetime
from typing import Protocol

import structlog

from toolagent.core.failures import StoreUnavailableError
from toolagent_service.contracts.containers import ContainerInfo, ContainerStatus

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class ContainerBook(Protocol):
    """Keeps the last state of each container."""

    async def note(self, container: ContainerInfo) -> None: ...


class NoBook:
    """Remembers nothing."""

    async def note(self, container: ContainerInfo) -> None:
        pass


class BufferedContainerBook:
    """`book` may be away (StoreUnavailableError), and no container waits for it: what it could not be told, it is told with the next."""

    def __init__(self, book: ContainerBook) -> None:
        self._book = book
        self._untold: dict[str, ContainerInfo] = {}
        self._turn = asyncio.Lock()

    async def note(self, container: ContainerInfo) -> None:
        self._untold[container.container_id] = container
        async with self._turn:
            for one in [*self._untold.values()]:
                try:
                    await self._book.note(one)
                except StoreUnavailableError as error:
                    _log.warning("container_not_noted_yet", container=one.container_id, reason=str(error))
                    return
                if self._untold.get(one.container_id) is one:
                    del self._untold[one.container_id]


def gone(container: ContainerInfo) -> ContainerInfo:
    """The same, as of now destroyed."""
    return container.model_copy(update={"status": ContainerStatus.DESTROYED, "destroyed_at": datetime.now(UTC)})
