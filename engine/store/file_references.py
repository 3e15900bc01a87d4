"""The table `file_references`: which calls, versions and tasks name a file, so that it is not swept."""

import re

from sqlalchemy import delete, literal, select
from sqlalchemy.ext.asyncio import AsyncConnection

from engine.store.rows.upserts import batches, insert_for
from engine.store.tables import file_references, files

_FILE_ID = re.compile(r"(?<![0-9A-Za-z_])file_[0-9a-f]{32}(?![0-9A-Za-z_])")
_AT_ONCE = 500


def holder_of_call(call_id: str) -> str:
    return f"call:{call_id}"


def holder_of_conversation(task_id: str) -> str:
    return f"task:{task_id}"


def holder_of_candidates(task_id: str) -> str:
    """Holder of what a task has built. Its conversation is another holder, which lasts longer."""
    return f"candidates:{task_id}"


def holder_of_version(tool_id: str, version: str) -> str:
    return f"version:{tool_id}@{version}"


def named_files(*documents: str | None) -> tuple[str, ...]:
    """Every file id anywhere in these JSON texts: rather keep one file too many."""
    found = (match for document in documents if document and "file_" in document for match in _FILE_ID.findall(document))
    return tuple(dict.fromkeys(found))


async def hold_files(connection: AsyncConnection, holder: str, file_ids: tuple[str, ...]) -> None:
    """Let the holder keep those of these files that exist, in the caller's transaction. Idempotent."""
    for some in batches(file_ids, _AT_ONCE):
        known = select(files.c.file_id, literal(holder)).where(files.c.file_id.in_(some))
        await connection.execute(insert_for(connection, file_references).from_select(["file_id", "holder"], known).on_conflict_do_nothing())


async def release_files(connection: AsyncConnection, *holders: str) -> None:
    """Remove these holders. The sweep later removes files without a holder."""
    await connection.execute(delete(file_references).where(file_references.c.holder.in_(holders)))
