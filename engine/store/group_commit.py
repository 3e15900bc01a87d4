"""Many small writes in few transactions: items that arrive during one transaction share the next."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Generic, TypeVar

from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from engine.store.database import Database

T = TypeVar("T")


class GroupCommit(Generic[T]):
    """`apply` writes several items on a connection, and must be idempotent.

    Each transaction costs one disk sync, however much it writes, and SQLite runs one at a time. Under load, calls wait mostly for this.
    """

    def __init__(
        self, database: Database, apply: Callable[[AsyncConnection, Sequence[T]], Coroutine[Any, Any, None]], most: int = 64
    ) -> None:
        self._database, self._apply, self._most = database, apply, most
        self._waiting: list[tuple[T, asyncio.Future[None]]] = []
        self._worker: asyncio.Task[None] | None = None

    async def write(self, item: T) -> None:
        """Returns once the item is committed. Raises StoreUnavailableError, or the database's error about this item."""
        done = asyncio.get_running_loop().create_future()
        self._waiting.append((item, done))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work(), name="group commit")
        await done

    async def _work(self) -> None:
        while self._waiting:
            taken, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
            await self._commit(taken)

    async def _commit(self, taken: list[tuple[T, asyncio.Future[None]]]) -> None:
        try:
            await self._database.transact(lambda connection: self._apply(connection, [item for item, _ in taken]))
        except DBAPIError as error:
            if len(taken) == 1:
                _tell(taken[0][1], error)
                return
            # One of them cannot be written. Write the others alone.
            for one in taken:
                await self._commit([one])
        except Exception as error:  # noqa: BLE001 - each waiting caller gets the error
            for _, done in taken:
                _tell(done, error)
        else:
            for _, done in taken:
                _tell(done, None)


def _tell(done: asyncio.Future[None], error: Exception | None) -> None:
    """Wake the caller, if it still waits."""
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)
