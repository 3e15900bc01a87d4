"""`python -m workers verify`: checks database, files, archives and Temporal's file, also while the service runs.

Changes nothing.
"""

import asyncio
import hashlib
import tarfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from engine.disk.temporary import temporary_folder
from engine.store.catalog_entries import CatalogEntryTable
from engine.store.content.store import ContentStore
from engine.store.database import Database
from engine.store.files import FileStore
from engine.store.verification import Damage, Verified, verify_content, verify_database, verify_references, verify_sqlite_file
from toolagent.contracts.records import StoredFile
from toolagent.core.failures import ContentMissingError, StoreUnavailableError
from workers.settings.whole import Settings
from workers.state.content import content_of
from workers.state.database import kept_database
from workers.state.directory import StateDirectory
from workers.temporal.dev_server import TEMPORAL_REMEDY


async def verify(settings: Settings) -> int:
    """Print what was checked and what is damaged. Returns the exit code: 1 for any damage. Raises CannotRun."""
    state = StateDirectory(settings.state.state_dir.absolute())
    database = await kept_database(settings.database, state)
    try:
        found = await _verified(database, content_of(database, settings.content, state), state)
    finally:
        await database.close()
    return _told(found)


async def _verified(database: Database, content: ContentStore, state: StateDirectory) -> list[Verified]:
    found = [await _part("database", lambda: verify_database(database))]
    found.append(await _part("references", lambda: verify_references(database)))
    found.append(await _part("content", lambda: verify_content(database, content)))
    found.append(await _part("archives", lambda: _verify_archives(database, content, state)))
    if await asyncio.to_thread((file := state.temporal / "temporal.db").is_file):
        found.append(await verify_sqlite_file("temporal", file, TEMPORAL_REMEDY))
    return found


async def _part(part: str, look: Callable[[], Awaitable[Verified]]) -> Verified:
    try:
        return await look()
    except StoreUnavailableError as error:
        return Verified(part, 0, (Damage(part, f"it could not be looked at: {error}", "mend what is said here, and verify again"),))


async def _verify_archives(database: Database, content: ContentStore, state: StateDirectory) -> Verified:
    """Checks that each archive can be unpacked, and that its unpacked files are unchanged. The content check reports damaged bytes."""
    archives = sorted(set((await CatalogEntryTable(database).content_of()).values()))
    damages: list[Damage] = []
    with temporary_folder("tool-agent-verify-") as spool:
        files = FileStore(database, content, spool, 1)
        for archive in archives:
            file = await files.get(archive)
            if file is not None:
                damages += await _damages_of(file, content, state.projects / archive, spool / "archive.tar")
    return Verified("archives", len(archives), tuple(damages))


async def _damages_of(file: StoredFile, content: ContentStore, project: Path, spool: Path) -> list[Damage]:
    try:
        with spool.open("wb") as target:
            async for piece in content.read(file.sha256):
                target.write(piece)
    except ContentMissingError:
        return []
    return await asyncio.to_thread(_unpacked_damages, file, project, spool)


def _unpacked_damages(file: StoredFile, project: Path, archive: Path) -> list[Damage]:
    if hashlib.sha256(archive.read_bytes()).hexdigest() != file.sha256:
        return []
    try:
        with tarfile.open(archive, "r:") as tar:
            wrong = [member.name for member in tar if member.isreg() and project.is_dir() and not _is_unpacked(tar, member, project)]
    except tarfile.TarError as error:
        return [Damage(f"{file.file_id} ({file.name})", f"it cannot be unpacked: {error}", "have the tool made or imported again")]
    return [Damage(str(project / name), "it is not what the archive has", f"remove {project}; it is unpacked again") for name in wrong]


def _is_unpacked(tar: tarfile.TarFile, member: tarfile.TarInfo, project: Path) -> bool:
    held = tar.extractfile(member)
    try:
        return held is not None and (project / member.name).read_bytes() == held.read()
    except OSError:
        return False


def _told(found: list[Verified]) -> int:
    console = Console()
    table = Table(box=None, pad_edge=False)
    for heading in ("part", "checked", "damaged"):
        table.add_column(heading)
    for one in found:
        table.add_row(one.part, str(one.checked), str(len(one.damages)))
    console.print(table)
    for one in found:
        for damage in one.damages:
            console.print(
                f"{one.part}: {damage.what}: {damage.wrong}. To do: {damage.remedy.rstrip('.')}.", style="red", markup=False, soft_wrap=True
            )
    return 1 if any(one.damages for one in found) else 0
