"""The table `content_removals`: bytes that are being removed now, so that a concurrent writer does not lose them.

A writer writes its row in `files` first, then looks here. A removal writes here first, then looks for a row in `files`. Whatever the order,
one sees the other: either the removal leaves the bytes, or the writer waits and checks whether they are still there.
"""

import asyncio
import secrets
import time

from sqlalchemy import delete, select

from engine.store.content.store import ContentStore
from engine.store.database import Database
from engine.store.rows.upserts import insert_for
from engine.store.tables import content_removals, files
from toolagent.core.failures import ContentUnavailableError

_REMOVE_S = 30.0
_PAUSE_S = 0.1


class ContentRemovals:
    """`patience_s`: a removal has ended or died after so many seconds. Longer than a removal may take."""

    def __init__(self, database: Database, patience_s: float = 2 * _REMOVE_S) -> None:
        self._database = database
        self._patience_s = patience_s

    async def remove(self, content: ContentStore, sha256: str) -> bool:
        """Remove the bytes if no file has them. False if a file has them or another removal runs.

        Raises ContentUnavailableError, StoreUnavailableError: then the outcome is unknown, and the mark stays until `outlast` removes it.
        """
        token = secrets.token_hex(16)
        if not await self._begin(sha256, token):
            return False
        try:
            async with asyncio.timeout(_REMOVE_S):
                is_free = not await self._is_named(sha256)
                if is_free:
                    await content.delete(sha256)
        except TimeoutError as error:
            raise ContentUnavailableError(f"Removing a file took longer than {_REMOVE_S:g} s.") from error
        await self._end(sha256, token)
        return is_free

    async def outlast(self, sha256: str) -> None:
        """Wait until no removal of these bytes runs."""
        token, patience_until = await self._token(sha256), time.monotonic() + self._patience_s
        while token is not None:
            if time.monotonic() >= patience_until:
                await self._end(sha256, token)
            else:
                await asyncio.sleep(_PAUSE_S)
            now = await self._token(sha256)
            if now != token:
                token, patience_until = now, time.monotonic() + self._patience_s

    async def unfinished(self) -> tuple[str, ...]:
        """Hashes of bytes with a removal that runs or has died."""
        return tuple(await self._database.scalars(select(content_removals.c.sha256)))

    async def _begin(self, sha256: str, token: str) -> bool:
        async with self._database.write() as connection:
            statement = insert_for(connection, content_removals).values(sha256=sha256, token=token)
            return (await connection.execute(statement.on_conflict_do_nothing())).rowcount == 1

    async def _end(self, sha256: str, token: str) -> None:
        await self._database.change(delete(content_removals).filter_by(sha256=sha256, token=token))

    async def _token(self, sha256: str) -> str | None:
        return await self._database.scalar(select(content_removals.c.token).filter_by(sha256=sha256))

    async def _is_named(self, sha256: str) -> bool:
        return bool(await self._database.scalars(select(files.c.file_id).filter_by(sha256=sha256).limit(1)))
