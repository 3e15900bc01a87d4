"""External tables: registered, refreshed, removed."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Protocol

import structlog

from engine.external.entries import Listing
from engine.external.forms.openapi import secret_stem
from engine.external.reading import TableReader
from engine.registry.secret_vault import SecretRefusedError
from engine.store.external_tables import ExternalTableRows
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.external_tables import ExternalTable, ExternalTables, LeftOutTool, RemovedTable
from toolagent.core.calls.masking import masked_text
from toolagent.core.failures import NoSuchTableError, TableExistsError, TableNotReachedError, TableRefusedError

_TOLD = 50
_AT_ONCE = 4
_IN_A_ROUND = 8
"""Tables per round, which has a minute even if none answers. The others have their turn in the next round."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class TableKeys(Protocol):
    """Stores keys of tables, as `workers.state.secrets.SecretSource` does."""

    def resolve(self, name: str) -> str | None: ...
    def replace(self, name: str, value: str) -> None: ...
    def forget(self, name: str) -> None: ...


class Tables:
    """All raise StoreUnavailableError."""

    def __init__(self, rows: ExternalTableRows, reader: TableReader, keys: TableKeys, *, every_s: float = 3600.0) -> None:
        self._rows, self._reader, self._keys, self._every_s = rows, reader, keys, every_s

    async def list_all(self) -> ExternalTables:
        return ExternalTables(tables=await self._rows.list_all())

    async def register(self, source: str, url: str, key: str | None) -> ExternalTable:
        """Fetch a table and import its tools. Only the key given here counts: one stored under its name was for another table.

        If this raises TableExistsError, TableRefusedError or TableNotReachedError, nothing is kept.
        """
        await self._require_free(source)
        if masked_text(url) != url:
            raise TableRefusedError("tools_url", "It holds a key or a password. Leave that out, and give it in `api_key`.")
        secret = f"{secret_stem(source)}_API_KEY".upper() if key else None
        read = await self._reader.read(source, url, secret, key)
        now = datetime.now(UTC)
        table = ExternalTable(
            source=source,
            tools_url=url,
            api_key=f"secret:{secret}" if secret else None,
            form=read.form,
            registered_at=now,
            refreshed_at=now,
            attempted_at=now,
        )
        table = _counted(table, read.listing.entries, read.listing.left_out)
        if not await self._rows.add(table, read.listing.entries):
            raise TableExistsError(_exists(source))
        if key and secret:
            # Only now: a registration that loses the race for this name must not replace the winner's key.
            try:
                self._keys.replace(secret, key)
            except SecretRefusedError as error:
                await self._rows.remove(source)
                raise TableRefusedError("api_key", f"It cannot be kept: {error}") from error
        return table

    async def refresh(self, source: str) -> ExternalTable:
        """Fetch a table again. If that fails, its tools stay and `error` says why. Raises NoSuchTableError."""
        table = await self._rows.get(source)
        if table is None:
            raise NoSuchTableError(_none(source))
        renewed, entries = await self._fetched(table)
        if not await self._rows.renew(renewed, entries):
            raise NoSuchTableError(_none(source))
        return renewed

    async def remove(self, source: str) -> RemovedTable:
        """Remove a table with its tools and its key. Raises NoSuchTableError."""
        table, count = await self._rows.get(source), await self._rows.remove(source)
        if table is None or count is None:
            raise NoSuchTableError(_none(source))
        try:
            if table.api_key:
                self._keys.forget(table.api_key.removeprefix("secret:"))
        except SecretRefusedError as error:
            _log.warning("key_of_table_not_removed", source=source, reason=str(error))
        return RemovedTable(source=source, tools=count)

    async def refresh_due(self) -> tuple[str, ...]:
        """Fetch tables that are due. Returns a line about each."""
        before = datetime.now(UTC) - timedelta(seconds=self._every_s)
        stale = [table for table in await self._rows.list_all() if table.attempted_at <= before]
        due = [table.source for table in sorted(stale, key=lambda table: table.attempted_at)[:_IN_A_ROUND]]
        slots = asyncio.Semaphore(_AT_ONCE)

        async def one(source: str) -> str:
            async with slots:
                try:
                    table = await self.refresh(source)
                except NoSuchTableError:
                    return f"external table {source}: removed"
                except Exception as error:  # noqa: BLE001 - one table must not block the others
                    return f"external table {source}: {await self._failed(source, error)}"
            return f"external table {source}: {table.error or f'{table.tools} tools'}"

        return tuple(await asyncio.gather(*map(one, due)))

    async def _failed(self, source: str, error: Exception) -> str:
        """Record our own error as a failed refresh, so that the table is not tried again before it is due."""
        said = f"It could not be read: {type(error).__name__}. The log of the worker says more."
        _log.error("external_table_not_refreshed", source=source, exc_info=error, then="its tools stay as they were")
        if table := await self._rows.get(source):
            await self._rows.renew(table.model_copy(update={"attempted_at": datetime.now(UTC), "error": said}))
        return said

    async def _fetched(self, table: ExternalTable) -> tuple[ExternalTable, tuple[ToolEntry, ...] | None]:
        """The updated table, and its tools if they could be fetched."""
        now, secret = datetime.now(UTC), table.api_key.removeprefix("secret:") if table.api_key else None
        try:
            read = await self._reader.read(table.source, table.tools_url, secret, self._key(secret))
        except (TableRefusedError, TableNotReachedError) as refusal:
            _log.warning("external_table_not_refreshed", source=table.source, reason=str(refusal), then="its tools stay as they were")
            return table.model_copy(update={"attempted_at": now, "error": str(refusal)}), None
        listing = _without(read.listing, await self._rows.taken(table.source))
        renewed = table.model_copy(update={"form": read.form, "refreshed_at": now, "attempted_at": now, "error": ""})
        return _counted(renewed, listing.entries, listing.left_out), listing.entries

    def _key(self, secret: str | None) -> str | None:
        """Raises TableRefusedError."""
        key = self._keys.resolve(secret) if secret else None
        if secret and not key:
            raise TableRefusedError("api_key", f"Its key is not here. Set TOOL_AGENT_SECRET_{secret} on this host.")
        return key

    async def _require_free(self, source: str) -> None:
        """Raises TableExistsError."""
        if await self._rows.get(source) is not None:
            raise TableExistsError(_exists(source))
        if taken := sorted(await self._rows.taken(source)):
            raise TableExistsError(f"There are tools of ours whose ids begin with {source!r}, such as {taken[0]}. Choose another source.")


def _without(listing: Listing, taken: frozenset[str]) -> Listing:
    """The listing without ids that other tools have taken since the registration."""
    free = tuple(entry for entry in listing.entries if entry.manifest.tool_id not in taken)
    ours = sorted({entry.manifest.tool_id for entry in listing.entries} & taken)
    return Listing(free, (*listing.left_out, *(LeftOutTool(entry=one, reason="A tool of ours has this id.") for one in ours)))


def _counted(table: ExternalTable, entries: tuple[ToolEntry, ...], left_out: tuple[LeftOutTool, ...]) -> ExternalTable:
    return table.model_copy(update={"tools": len(entries), "left_out": left_out[:_TOLD], "left_out_total": len(left_out)})


def _exists(source: str) -> str:
    return f"There is a table {source!r} already. Refresh it, remove it first, or choose another source."


def _none(source: str) -> str:
    return f"There is no external table {source!r}; GET /external_tools lists them."
