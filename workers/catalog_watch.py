"""Importing the catalog at start, and again whenever its files or its tools' projects change."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
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
    import_catalog: ImportCatalog, data_dir: Path, state_dir: Path, *, watch: bool, restart_s: float = _RESTART_S
) -> AsyncGenerator[tuple[CatalogFault, ...]]:
    """Import once; with `watch` again on every change until the block ends. Yields what was wrong at first.

    A change is imported when the files have been still for a moment. What was half written then is a fault, stops nothing, and is
    imported when the rest of it comes. Whatever ends the watching is said, and it begins again after `restart_s` seconds.
    """
    whole = await asyncio.to_thread(_whole, data_dir, state_dir)
    faults = await import_catalog()
    _say(faults, ())
    if not await asyncio.to_thread(data_dir.is_dir):
        _log.info("no_catalog_folder", folder=str(data_dir), tools="those that other hosts and earlier imports know")
    if not watch:
        yield faults
        return
    watching = asyncio.create_task(_kept_up(_Watch(import_catalog, data_dir, state_dir, faults), whole, restart_s))
    try:
        yield faults
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching


async def _kept_up(watch: "_Watch", whole: object, restart_s: float) -> None:
    """For ever. The service runs its tools on meanwhile, so it is no reason to end it; but nobody would see that edits have no effect."""
    while True:
        watching = asyncio.create_task(watch.run(whole), name="watch the catalog")
        try:
            await asyncio.wait((watching,))
        finally:
            watching.cancel()
            await asyncio.wait((watching,))
        cause = None if watching.cancelled() else watching.exception()
        _log.error("catalog_watch_ended", cause=repr(cause), begins_again_after_s=restart_s, exc_info=cause)
        await asyncio.sleep(restart_s)
        # Which change it was that could not be imported is not known any more.
        whole = None


class _Watch:
    def __init__(self, import_catalog: ImportCatalog, data_dir: Path, state_dir: Path, faults: tuple[CatalogFault, ...]) -> None:
        self._import = import_catalog
        self._data_dir = data_dir.absolute()
        self._state_dir = state_dir.absolute()
        self._faults = faults

    async def run(self, whole: object) -> None:
        """For ever: a folder that is not there, or that is replaced by another one, is looked for again."""
        while True:
            try:
                whole = await self._follow(whole)
            except OSError as error:
                _log.warning("catalog_not_watched", folder=str(self._data_dir), reason=str(error), looked_again_after_s=_RETRY_S)
                # What was imported meanwhile is not in it.
                whole = None
                await asyncio.sleep(_RETRY_S)

    async def _follow(self, whole: object) -> object:
        """Until the folder is another one than the one that is watched. Takes and returns what all files looked like at the last import,
        none when that is not known."""
        if not await asyncio.to_thread(self._data_dir.is_dir):
            await asyncio.sleep(_LOOK_AGAIN_MS / 1000)
            return whole
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
            # Comes when the watch stands, at the latest on its first time-out: what changed before that, it cannot tell.
            changed = await anext(changes)
            seen = await asyncio.to_thread(_stamp, self._data_dir)
            if changed or await asyncio.to_thread(_whole, self._data_dir, self._state_dir) != whole:
                await self._import_again()
            while await asyncio.to_thread(_place_of, self._data_dir) == place:
                changed = await anext(changes)
                # Also on a time-out: where the system does not tell, the catalog files are seen by their stamp.
                before, seen = seen, await asyncio.to_thread(_stamp, self._data_dir)
                if changed or seen != before:
                    await self._import_again()
        return None

    def _matters(self, _change: Change, path: str) -> bool:
        one = Path(path)
        if one.is_relative_to(self._state_dir) or not one.is_relative_to(self._data_dir):
            return False
        parts = one.relative_to(self._data_dir).parts
        return parts[0] in _FILES if len(parts) == 1 else _LEFT_OUT.isdisjoint(parts)

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
    return tuple(_place_of(data_dir / name) for name in sorted(_FILES))


def _whole(data_dir: Path, state_dir: Path) -> tuple[object, ...]:
    """What the catalog files and all files of the tools' projects look like from outside."""
    top, left_out = data_dir.absolute(), state_dir.absolute()
    found: list[object] = [_stamp(top)]
    # However deep it is, which `os.walk` minds until Python 3.12.
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        with suppress(OSError):  # gone meanwhile, or not for us to read
            for path in sorted(folder.iterdir()):
                if path.name not in _LEFT_OUT and path.is_dir() and not path.is_symlink() and path != left_out:
                    waiting.append(path)
                elif folder != top:
                    found.append((str(path), _place_of(path)))
    return tuple(found)


def _place_of(path: Path) -> tuple[int, ...] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if path.is_dir() else (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)
