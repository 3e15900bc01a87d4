"""`python -m workers export`: writes the catalog from the database into a folder, also while the service runs."""

import asyncio
import json
import os
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from pydantic import JsonValue
from rich.console import Console
from rich.table import Table

from engine.registry.export import CatalogExport
from toolagent.core.failures import StoreUnavailableError
from workers.failures import CannotRun, cannot_run_on
from workers.settings.whole import Settings
from workers.state.database import kept_database
from workers.state.directory import StateDirectory

_DEFAULT = Path("catalog-export")
_FORCE = "--force"


def export_command(arguments: Sequence[str]) -> Callable[[Settings], Awaitable[int]] | None:
    """The command for `[folder] [--force]`; None for other arguments."""
    folders = [argument for argument in arguments if argument != _FORCE]
    if len(folders) > 1 or any(folder.startswith("-") for folder in folders):
        return None
    return partial(export, folder=Path(folders[0]) if folders else _DEFAULT, force=_FORCE in arguments)


async def export(settings: Settings, folder: Path, *, force: bool) -> int:
    """Write the files and print what is in them. Returns the exit code. Raises CannotRun."""
    await asyncio.to_thread(_require_room, folder, force=force)
    documents = await _documents(settings)
    await asyncio.to_thread(_write, folder, documents)
    Console(stderr=True).print(_summary(folder, documents))
    return 0


async def _documents(settings: Settings) -> dict[str, dict[str, JsonValue]]:
    remedy = " If it is from another release, start the service once: that brings its tables up to date."
    database = await kept_database(settings.database, StateDirectory(settings.state.state_dir.absolute()))
    try:
        with cannot_run_on(StoreUnavailableError, remedy=remedy):
            return await CatalogExport(database).documents()
    finally:
        await database.close()


def _require_room(folder: Path, *, force: bool) -> None:
    if folder.exists() and not folder.is_dir():
        raise CannotRun(f"{str(folder)!r} is no folder.")
    if folder.is_dir() and any(folder.iterdir()) and not force:
        raise CannotRun(f"The folder {str(folder)!r} is not empty. Name another one, or add {_FORCE} to write over the files in it.")


def _write(folder: Path, documents: Mapping[str, JsonValue]) -> None:
    """Each file is written whole, or stays as it was."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, document in documents.items():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-")
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(document, file, ensure_ascii=False, indent=2)
                file.write("\n")
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).chmod(0o644)
            Path(temporary).replace(target)
    except OSError as error:
        raise CannotRun(f"The folder {str(folder)!r} cannot be written ({error.strerror}).") from error


def _summary(folder: Path, documents: Mapping[str, dict[str, JsonValue]]) -> Table:
    table = Table.grid(padding=(0, 2))
    for name, document in documents.items():
        counts = [len(value) for value in document.values() if isinstance(value, list | dict)]
        table.add_row(str(folder / name), f"{max(counts, default=0)} entries")
    return table
