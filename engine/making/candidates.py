"""Keeps candidates, the output of builds, in the content store until they are registered or their task ends."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from engine.making.evidence import lock_of
from engine.registry.archives import ProjectArchives
from engine.store.content.incoming import pieces_of
from engine.store.database import Database
from engine.store.file_references import hold_files, holder_of_candidates, named_files, release_files
from engine.store.files import FileStore
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.making import Candidate
from toolagent.core.failures import ContentMissingError

_NAME = "candidate.json"
_LONGEST_TOLD = 300


class Candidates:
    """A candidate's files are kept while its task holds them, then with its versions. Idempotent: the same candidate is the same file."""

    def __init__(self, database: Database, files: FileStore) -> None:
        self._database, self._files = database, files

    async def keep(self, task_id: str, candidate: Candidate, folders: Mapping[str, Path]) -> str:
        """Packs the projects of its tools (`folders`, by tool id) and returns the id of the candidate's file. Raises NotPackedError."""
        archives = ProjectArchives(self._files)
        packed = {folder: await archives.content_of(folder, folder.name) for folder in dict.fromkeys(folders.values())}
        entries = tuple(_with_content(entry, packed.get(folders.get(entry.manifest.tool_id, Path()))) for entry in candidate.entries)
        locks = await asyncio.to_thread(_locks_of, candidate, folders)
        return await self._kept(task_id, candidate.model_copy(update={"entries": entries, "locks": locks}))

    async def _kept(self, task_id: str, candidate: Candidate) -> str:
        text = candidate.model_dump_json()
        file = await self._files.put(pieces_of(text.encode()), _NAME, "application/json")
        async with self._database.write() as connection:
            await hold_files(connection, holder_of_candidates(task_id), (file.file_id, *named_files(text)))
        return file.file_id

    async def narrow(self, task_id: str, candidate: Candidate, without: Mapping[str, str]) -> str:
        """Keeps the candidate without these tools (each with the reason) and returns the file's id. The archives stay the same."""
        entries = tuple(entry for entry in candidate.entries if entry.manifest.tool_id not in without)
        ids = tuple(entry.manifest.tool_id for entry in entries)
        left = tuple(" ".join(f"{tool_id}: {why}".split())[:_LONGEST_TOLD] for tool_id, why in without.items())
        group = candidate.group.model_copy(update={"tool_ids": ids}) if candidate.group else None
        own = candidate.model_copy(update={"entries": entries, "group": group, "left_out": (*candidate.left_out, *left)})
        return await self._kept(task_id, own)

    async def load(self, candidate: str) -> Candidate:
        """Raises ContentMissingError."""
        file = await self._files.get(candidate)
        if file is None:
            raise ContentMissingError(candidate)
        content = b"".join([piece async for piece in self._files.read(file)])
        return Candidate.model_validate_json(content)

    async def forget(self, task_id: str) -> None:
        """Files without another holder are removed by the sweep."""
        async with self._database.write() as connection:
            await release_files(connection, holder_of_candidates(task_id))


def _locks_of(candidate: Candidate, folders: Mapping[str, Path]) -> dict[str, str]:
    """Blocks."""
    entries = {entry.manifest.tool_id: entry for entry in candidate.entries}
    return {name: lock for name, folder in folders.items() if name in entries and (lock := lock_of(folder, entries[name].sources[0]))}


def _with_content(entry: ToolEntry, content: str | None) -> ToolEntry:
    if content is None:
        return entry
    return entry.model_copy(update={"sources": tuple(source.packed_as(content) for source in entry.sources)})
