"""Imports the catalog at start, and again whenever its files or its tools' folders change."""

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
from toolagent.core.catalog.tool_files import SUFFIX
from toolagent.core.failures import StoreUnavailableError

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
    """Import once; with `watch`, again on every change until the block ends. Yields the faults of the first import.

    Changes are imported once the files are unchanged for a moment. A half-written file is a fault, and is imported once it is complete.
    `others` are folders outside the data folder in which every change counts. A watch that ends is logged, and restarts after
    `restart_s` seconds.
    """
    watches = [_Watch(import_catalog, folder, state_dir, every=folder is not data_dir) for folder in _apart(data_dir, others)]
    for one in watches:
        await one.take_note()
    faults = await import_catalog()
    _say(faults, ())
    if not await asyncio.to_thread(data_dir.is_dir):
        _log.info("no_catalog_folder", folder=str(data_dir), tools="those that other hosts and earlier imports know")
    if not watch:
        yield faults
        return
    tasks = [asyncio.create_task(_kept_up(one, faults, restart_s)) for one in watches]
    try:
        yield faults
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task


async def _kept_up(watch: "_Watch", faults: tuple[CatalogFault, ...], restart_s: float) -> None:
    """Run the watch forever. Without the restart, edits would silently have no effect."""
    while True:
        watching = asyncio.create_task(watch.run(faults), name="watch the catalog")
        try:
            await asyncio.wait((watching,))
        finally:
            watching.cancel()
            await asyncio.wait((watching,))
        cause = None if watching.cancelled() else watching.exception()
        _log.error("catalog_watch_ended", cause=repr(cause), begins_again_after_s=restart_s, exc_info=cause)
        await asyncio.sleep(restart_s)


class _Watch:
    """Watches one folder: all files in subfolders; directly in it only catalog files and tool files, or `every` file."""

    def __init__(self, import_catalog: ImportCatalog, folder: Path, state_dir: Path, *, every: bool) -> None:
        self._every = every
        self._import = import_catalog
        self._folder = folder.absolute()
        self._state_dir = state_dir.absolute()
        self._said: tuple[CatalogFault, ...] = ()
        self._noted: tuple[object, ...] | None = None

    async def take_note(self) -> None:
        """Note the state of the files before an import."""
        self._noted = await asyncio.to_thread(self._look)

    async def run(self, said: tuple[CatalogFault, ...]) -> None:
        """Watch forever. A missing or replaced folder is looked for again."""
        self._said = said
        while True:
            try:
                await self._follow()
            except OSError as error:
                _log.warning("catalog_not_watched", folder=str(self._folder), reason=str(error), looked_again_after_s=_RETRY_S)
                await asyncio.sleep(_RETRY_S)
            except ExceptionGroup as group:
                # A name that is not UTF-8 ends the watcher. What else changed meanwhile is imported, too.
                ended, others = group.split(RuntimeError)
                if ended is None or others is not None:
                    raise
                _log.warning("catalog_not_watched", folder=str(self._folder), reason=repr(ended), looked_again_after_s=_RETRY_S)
                await asyncio.sleep(_RETRY_S)
                await self._import_again()
            finally:
                # Whether the last state was imported is unknown: import the next one in any case.
                self._noted = None

    async def _follow(self) -> None:
        """Watch until the folder is replaced."""
        if not await asyncio.to_thread(self._folder.is_dir):
            await asyncio.sleep(_LOOK_AGAIN_MS / 1000)
            return
        place = await asyncio.to_thread(_place_of, self._folder)
        watched = awatch(
            self._folder,
            watch_filter=self._matters,
            debounce=_DEBOUNCE_MS,
            step=_STEP_MS,
            rust_timeout=_LOOK_AGAIN_MS,
            yield_on_timeout=True,
            ignore_permission_denied=True,
        )
        async with aclosing(watched) as changes:
            # The first event means that the watch works. It does not report earlier changes.
            changed = await anext(changes)
            seen = await asyncio.to_thread(_catalog_files, self._folder)
            if changed or await asyncio.to_thread(self._look) != self._noted:
                await self._import_again()
            while await asyncio.to_thread(_place_of, self._folder) == place:
                changed = await anext(changes)
                # Also compare on a time-out: some file systems report no changes.
                before, seen = seen, await asyncio.to_thread(_catalog_files, self._folder)
                if changed or seen != before:
                    await self._import_again()

    def _look(self) -> tuple[object, ...]:
        """The state of all watched files."""
        found: list[object] = []
        # Not `os.walk`, which is recursive until Python 3.12.
        waiting = [self._folder]
        while waiting:
            folder = waiting.pop()
            with suppress(OSError):  # removed meanwhile, or unreadable
                for path in sorted(folder.iterdir()):
                    if path.is_dir() and not path.is_symlink():
                        waiting.extend((path,) if path.name not in _LEFT_OUT and path != self._state_dir else ())
                    elif self._matters(Change.modified, str(path)):
                        found.append((str(path), _place_of(path)))
        return tuple(found)

    def _matters(self, _change: Change, path: str) -> bool:
        one = Path(path)
        if one.is_relative_to(self._state_dir) or not one.is_relative_to(self._folder):
            return False
        parts = one.relative_to(self._folder).parts
        at_top = len(parts) == 1
        return self._every or parts[0] in _FILES or parts[0].endswith(SUFFIX) if at_top else _LEFT_OUT.isdisjoint(parts)

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
        _say(faults, self._said)
        self._said = faults


def _say(faults: Iterable[CatalogFault], said: Iterable[CatalogFault]) -> None:
    known = frozenset(said)
    for fault in faults:
        if fault not in known:
            _log.warning("catalog_fault", file=fault.file, field=fault.field, reason=fault.reason)


def _catalog_files(folder: Path) -> tuple[object, ...]:
    """The state of the catalog files."""
    return tuple(_place_of(folder / name) for name in sorted(_FILES))


def _apart(data_dir: Path, others: Iterable[Path]) -> tuple[Path, ...]:
    """The data folder, then the other folders, without those inside another one."""
    found = [data_dir]
    for folder in sorted({folder.absolute() for folder in others}, key=lambda folder: len(folder.parts)):
        if not any(folder.is_relative_to(outer.absolute()) for outer in found):
            found.append(folder)
    return tuple(found)


def _place_of(path: Path) -> tuple[int, ...] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if path.is_dir() else (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)
