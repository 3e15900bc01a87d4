"""The table `tool_outcomes`: the outcome of each use of an agent's tool."""

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import select

from engine.store.database import Database
from engine.store.file_references import hold_files, holder_of_conversation
from engine.store.files import FileStore
from engine.store.rows.packed_content import packed, unpacked
from engine.store.rows.upserts import insert_for
from engine.store.tables import tool_outcomes
from engine.store.task_notes import bounded, lock_of_conversation, write_notes
from toolagent_service.agents.coding_log import NewNote
from toolagent_service.contracts.model import ToolOutcome


class ToolOutcomeTable:
    """Conversation and key identify an outcome. The key identifies the use (a model may give one id twice).

    Large ones are files, held by their conversation.
    """

    def __init__(self, database: Database, files: FileStore) -> None:
        self._database = database
        self._files = files

    async def put(
        self, conversation_id: str, outcomes: Mapping[str, ToolOutcome], notes: Sequence[NewNote] = ()
    ) -> Mapping[str, ToolOutcome]:
        """Write outcomes by key, and the notes, in one transaction.

        Returns the outcomes that stand: a repeated use keeps its first outcome.
        """
        kept = {bounded(key): await packed(self._files, outcome.model_dump(mode="json")) for key, outcome in outcomes.items()}
        of_it = {"conversation_id": conversation_id}
        rows = [{**of_it, "key": key, "content": one.content, "file_id": one.file_id} for key, one in kept.items()]
        files = tuple(one.file_id for one in kept.values() if one.file_id is not None)
        async with self._database.write(alone=lock_of_conversation(conversation_id)) as connection:
            insertion = insert_for(connection, tool_outcomes).on_conflict_do_nothing().returning(tool_outcomes.c.key)
            new = [found for row in rows if (found := (await connection.execute(insertion, row)).first())]
            await hold_files(connection, holder_of_conversation(conversation_id), files)
            await write_notes(connection, conversation_id, notes)
        return outcomes if len(new) == len(rows) else await self.get(conversation_id, outcomes)

    async def get(self, conversation_id: str, keys: Collection[str]) -> dict[str, ToolOutcome]:
        """Outcomes by key, without missing ones. Raises ContentMissingError."""
        of_it = tool_outcomes.c.conversation_id == conversation_id
        query = select(tool_outcomes).where(of_it, tool_outcomes.c.key.in_([*map(bounded, keys)]))
        rows = await self._database.mappings(query)
        contents = {row["key"]: await unpacked(self._files, row["content"], row["file_id"]) for row in rows}
        return {key: ToolOutcome.model_validate(contents[bounded(key)]) for key in keys if bounded(key) in contents}
