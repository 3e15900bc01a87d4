"""The table `messages`: the transcript of a conversation."""

from dataclasses import dataclass
from functools import lru_cache

from sqlalchemy import bindparam, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from engine.store.database import Database
from engine.store.file_references import hold_files, holder_of_conversation
from engine.store.files import FileStore
from engine.store.rows.packed_content import PackedContent, packed, unpacked
from engine.store.rows.upserts import dialect_insert
from engine.store.tables import messages
from engine.store.task_notes import bounded, lock_of_conversation
from toolagent_service.contracts.model import Message

column = messages.c

_LAST = 2**31 - 1

# Building a statement costs more than sending it.
_FROM_TO = (
    select(messages)
    .where(
        column.conversation_id == bindparam("of"),
        column.position >= bindparam("first"),
        column.position <= bindparam("last"),
    )
    .order_by(column.position)
)


@dataclass(frozen=True, slots=True)
class PackedMessage:
    """A message as stored."""

    role: str
    packed: PackedContent


@dataclass(frozen=True, slots=True)
class Standing:
    """The position of a message. Without `is_new`, an earlier message with possibly other content has it."""

    position: int
    is_new: bool


class MessageTable:
    """Writers choose the positions. Messages never change.

    Large ones are files, held by their conversation. All methods raise StoreUnavailableError, and for large messages as `FileStore`.
    """

    def __init__(self, database: Database, files: FileStore) -> None:
        self._database = database
        self._files = files

    async def put(self, conversation_id: str, position: int, message: Message) -> Message:
        """Write the message at this position, and return the message that stands there: the first one wins."""
        kept = await self.pack(message)
        async with self._database.write(alone=lock_of_conversation(conversation_id)) as connection:
            standing = await write_message(connection, conversation_id, key_of_position(position), kept, position)
        return message if standing.is_new else (await self.read(conversation_id, position, position))[0]

    async def read(self, conversation_id: str, first: int = 1, last: int | None = None) -> tuple[Message, ...]:
        """The messages from one position to another, both included, in order. Raises ContentMissingError."""
        asked = {"of": conversation_id, "first": first, "last": _LAST if last is None else last}
        rows = await self._database.mappings(_FROM_TO, asked)
        contents = [(row["role"], await unpacked(self._files, row["content"], row["file_id"])) for row in rows]
        return tuple(Message.model_validate({"role": role, "content": content}) for role, content in contents)

    async def pack(self, message: Message) -> PackedMessage:
        """Prepare a message for `write_message`, before the transaction begins."""
        return PackedMessage(message.role, await packed(self._files, message.model_dump(mode="json")["content"]))


def key_of_position(position: int) -> str:
    """The key of a message that only its position identifies."""
    return f"position:{position}"


async def write_message(connection: AsyncConnection, conversation_id: str, key: str, kept: PackedMessage, position: int) -> Standing:
    """Write the message at this position, unless its key or the position is taken. Returns the position that stands.

    Needs the lock of the conversation.
    """
    key = bounded(key)
    row = {
        "conversation_id": conversation_id,
        "position": position,
        "key": key,
        "role": kept.role,
        "content": kept.packed.content,
        "file_id": kept.packed.file_id,
    }
    if (await connection.execute(_new(connection.dialect.name), row)).first() is None:
        of_it, there = column.conversation_id == conversation_id, or_(column.key == key, column.position == position)
        known = select(column.position).where(of_it, there).order_by(column.position).limit(1)
        return Standing((await connection.execute(known)).scalar_one(), is_new=False)
    if kept.packed.file_id is not None:
        await hold_files(connection, holder_of_conversation(conversation_id), (kept.packed.file_id,))
    return Standing(position, is_new=True)


@lru_cache
def _new(dialect: str):
    return dialect_insert(dialect, messages).on_conflict_do_nothing().returning(column.position)
