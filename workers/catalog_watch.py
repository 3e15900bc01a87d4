"""Importing the catalog at start, and again whenever its files or its tools' projects change."""

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path

import structlog
from watchfiles import (
    Change,
    awatch,  # pyright: ignore[reportUnknownVariableType] - trio's events are not installed
)

from engine.registry.formats import FORMATS
from toolagent.contracts.records import CatalogFault
from toolagent.core.failures import StoreUnavailableError
from toolagent.core.tool_files import SUFFIX

__all__ = ["ImportCatalog", "imported_catalog"]

ImportCatalog = Callable[[], Awaitable[tuple[CatalogFault, ...]]]

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_FILES = frozenset(one.file_name for one in FORMATS)
_LEFT_OUT = frozenset({".venv", "__pycache__", ".git", "node_modules", ".pytest_cache", ".ruff_cache"})
_DEBOUNCE_MS = 400
_STEP_MS = 100
_LOOK_AGAIN_MS = 2_000
_RETRY_S = 2.0
_RESTART_S = 10.0


@asynccontextmanager
async def imported_catalog(
    import_catalog: ImportCatalog,
    data_dir: Path,
    state_dir: Path,
    *,
    watch: bool,
    others: Iterable[Path] = (),
    restart_s: float = _RESTART_S,
) -> AsyncGenerator[tuple[CatalogFault, ...]]:
    """Import once; with `watch` again on every change until the block ends. Yields what was wrong at first.

    A change is imported when the files have been still for a moment. What was half written then is a fault, stops nothing, and is
    imported when the rest of it comes. `others` are folders outside the data folder in which every change counts. Whatever ends the
    watching is said, and it begins again after `restart_s` seconds.
    """
    stamp = await asyncio.to_thread(_stamp, data_dir)
    faults = await import_catalog()
    _say(faults, ())
    if not await asyncio.to_thread(data_dir.is_dir):
        _log.info("no_catalog_folder", folder=str(data_dir), tools="those that other hosts and earlier imports know")
    if not watch:
        yield faults
        return
    beside = [_Watch(import_catalog, folder, state_dir, faults, every=True) for folder in _outside(data_dir, others)]
    watched = [(_Watch(import_catalog, data_dir, state_dir, faults), stamp), *((watch, None) for watch in beside)]
    tasks = [asyncio.create_task(_kept_up(watch, begun, restart_s)) for watch, begun in watched]
    try:
        yield faults
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task


async def _kept_up(watch: "_Watch", stamp: object, restart_s: float) -> None:
    """For ever. The service runs its tools on meanwhile, so it is no reason to end it; but nobody would see that edits have no effect."""
    while True:
        watching = asyncio.create_task(watch.run(stamp), name="watch the catalog")
        try:
            await asyncio.wait((watching,))
        finally:
            watching.cancel()
            await asyncio.wait((watching,))
        cause = None if watching.cancelled() else watching.exception()
        _log.error("catalog_watch_ended", cause=repr(cause), begins_again_after_s=restart_s, exc_info=cause)
        await asyncio.sleep(restart_s)
        # Which change it was that could not be imported is not known any more.
        stamp = None


class _Watch:
    def __init__(
        self, import_catalog: ImportCatalog, data_dir: Path, state_dir: Path, faults: tuple[CatalogFault, ...], *, every: bool = False
    ) -> None:
        self._every = every
        self._import = import_catalog
        self._data_dir = data_dir.absolute()
        self._state_dir = state_dir.absolute()
        self._faults = faults

    async def run(self, stamp: object) -> None:
        """For ever: a folder that is not there, or that is replaced by another one, is looked for again."""
        while True:
            try:
                stamp = await self._follow(stamp)
            except OSError as error:
                _log.warning("catalog_not_watched", folder=str(self._data_dir), reason=str(error), looked_again_after_s=_RETRY_S)
                await asyncio.sleep(_RETRY_S)

    async def _follow(self, stamp: object) -> object:
        """Until the folder is another one than the one that is watched. Returns what the files looked like then."""
        if not await asyncio.to_thread(self._data_dir.is_dir):
            await asyncio.sleep(_LOOK_AGAIN_MS / 1000)
            return stamp
        place = await asyncio.to_thread(_place_of, self._data_dir)
        watched = awatch(
            self._data_dir,
            watch_filter=self._matters,
            debounce=_DEBOUNCE_MS,
            step=_STEP_MS,
            rust_timeout=_LOOK_AGAIN_MS,
            yield_on_timeout=True,
            ignore_permission_denied=True,
        )
        async with aclosing(watched) as changes:
            async for changed in changes:
                # Also on a time-out: what changed before the watch stood, or where the system does not tell, is seen by its stamp.
                seen = await asyncio.to_thread(_stamp, self._data_dir)
                if changed or seen != stamp:
                    await self._import_again()
                    stamp = seen
                if await asyncio.to_thread(_place_of, self._data_dir) != place:
                    return stamp
        return stamp

    def _matters(self, _change: Change, path: str) -> bool:
        one = Path(path)
        if one.is_relative_to(self._state_dir) or not one.is_relative_to(self._data_dir):
            return False
        parts = one.relative_to(self._data_dir).parts
        return self._every or parts[0] in _FILES if len(parts) == 1 else _LEFT_OUT.isdisjoint(parts)

    async def _import_again(self) -> None:
        while True:
            try:
                faults = await self._import()
            except StoreUnavailableError as error:
                _log.warning("catalog_not_imported", reason=str(error), tried_again_after_s=_RETRY_S)
                await asyncio.sleep(_RETRY_S)
            else:
                break
        _log.info("catalog_imported", faults=len(faults))
        _say(faults, self._faults)
        self._faults = faults


def _say(faults: Iterable[CatalogFault], said: Iterable[CatalogFault]) -> None:
    known = frozenset(said)
    for fault in faults:
        if fault not in known:
            _log.warning("catalog_fault", file=fault.file, field=fault.field, reason=fault.reason)


def _stamp(data_dir: Path) -> tuple[object, ...]:
    """What the catalog files look like from outside."""
    files = [data_dir / name for name in sorted(_FILES)]
    return (*map(_place_of, files), *((str(path), _place_of(path)) for path in _tool_files_below(data_dir)))


def _tool_files_below(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _LEFT_OUT)
        yield from (Path(place, name) for name in sorted(names) if name.endswith(SUFFIX))


def _outside(data_dir: Path, others: Iterable[Path]) -> tuple[Path, ...]:
    """Of folders that lie in each other the outer one."""
    every = sorted({folder.absolute() for folder in others}, key=lambda folder: len(folder.parts))
    found = [data_dir.absolute()]
    for folder in every:
        if not any(folder.is_relative_to(outer) for outer in found):
            found.append(folder)
    return tuple(found[1:])


def _place_of(path: Path) -> tuple[int, ...] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if path.is_dir() else (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)
