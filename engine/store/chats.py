"""The archive of conversations: what was said, by whom, and what happened while it was answered."""

import json
from collections.abc import Sequence

from pydantic import JsonValue
from sqlalchemy import Select, delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from engine.store.chat_rows import event_of, event_row, listed_of, reply_of, turn_of, turn_row
from engine.store.chat_tables import chat_events, chat_turns, chats
from engine.store.clock import now, timestamp
from engine.store.database import Database
from engine.store.file_references import holder_of_conversation, release_files
from engine.store.tables import messages, model_turns, task_notes, tool_outcomes
from engine.store.upserts import insert_new
from toolagent.contracts.chats import AnsweredBy, ChatEvent, ChatEventKind, ChatReply, ChatRole, ChatTurn, Chunk, ListedChat
from toolagent.core.chats import chat_key, conversation_of, task_message_id

_KEPT_EVENTS = 1_000
"""Of one chat: chunks before these go, when a message is answered."""

_AT_ONCE = 500
_OF_A_CONVERSATION = (task_notes.c.task_id, messages.c.conversation_id, tool_outcomes.c.conversation_id, model_turns.c.conversation_id)


class ChatTable:
    """A turn is named by its message and side: written again, it stands as it was. All raise StoreUnavailableError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def say(self, chat_id: str, message_id: str, text: str) -> tuple[ChatTurn, ChatReply | None]:
        """The turn of this message, and its answer if it has one. Opens the chat."""
        async with self._database.write(alone=_lock(chat_id)) as connection:
            await _open(connection, chat_id)
            known = await _turns_of(connection, chat_id, message_id)
            said = next((turn for turn in known if turn.role is ChatRole.USER), None)
            answer = next((turn for turn in known if turn.role is ChatRole.ASSISTANT), None)
            if said is None:
                turn = ChatTurn(number=0, role=ChatRole.USER, text=text, at=now(), message_id=message_id)
                said = await _append(connection, chat_id, turn)
        return said, reply_of(chat_id, answer) if answer else None

    async def answer(self, chat_id: str, answer: ChatTurn, *, ends: bool = True) -> ChatTurn:
        """The turn of the assistant that stands for this message. Its number follows. `ends`: somebody waits for it, who is told."""
        async with self._database.write(alone=_lock(chat_id)) as connection:
            known = await _turns_of(connection, chat_id, answer.message_id)
            stands = next((turn for turn in known if turn.role is ChatRole.ASSISTANT), None)
            if stands is None:
                stands = await _append(connection, chat_id, answer)
                if ends and stands.number:
                    if unheard := _unheard(stands):
                        await _happened(connection, chat_id, ChatEventKind.CHUNK, answer.message_id, unheard)
                    reply = reply_of(chat_id, stands).model_dump(mode="json")
                    await _happened(connection, chat_id, ChatEventKind.DONE, answer.message_id, [reply])
                await _forget_chunks(connection, chat_id)
        return stands

    async def add_chunks(self, conversation_id: str, chunks: Sequence[Chunk]) -> None:
        """Parts of the answer that is made in this conversation with a model. Of a chat that was deleted they go nowhere."""
        for chat_id, message_id in await self._message_of(conversation_id):
            async with self._database.write(alone=_lock(chat_id)) as connection:
                data: list[JsonValue] = [chunk.model_dump(mode="json") for chunk in chunks]
                await _happened(connection, chat_id, ChatEventKind.CHUNK, message_id, data)

    async def chat_of(self, conversation_id: str) -> str | None:
        """The chat that a conversation with a model is about; None where it was deleted."""
        return next((chat_id for chat_id, _ in await self._message_of(conversation_id)), None)

    async def events_after(self, chat_id: str, position: int, *, limit: int = _AT_ONCE) -> tuple[ChatEvent, ...]:
        """In order."""
        query = select(chat_events).where(chat_events.c.chat_id == chat_id, chat_events.c.position > position)
        return tuple(map(event_of, await self._database.mappings(query.order_by(chat_events.c.position).limit(limit))))

    async def last_position(self, chat_id: str) -> int:
        """Of its events; 0 where there are none."""
        return await self._database.scalar(_last_position(chat_id)) or 0

    async def position_before(self, chat_id: str, message_id: str) -> int:
        """The position before the first event of this message; the last one where there is none yet."""
        query = select(func.min(chat_events.c.position)).where(chat_events.c.chat_id == chat_id, chat_events.c.message_id == message_id)
        first = await self._database.scalar(query)
        return first - 1 if first else await self.last_position(chat_id)

    async def get(self, chat_id: str) -> ListedChat | None:
        row = await self._database.mapping(select(chats).where(chats.c.chat_id == chat_id))
        return listed_of(row) if row else None

    async def turns(self, chat_id: str, *, before: int | None = None, limit: int = 100) -> tuple[ChatTurn, ...]:
        """The last ones before a number, in order."""
        query = select(chat_turns).where(chat_turns.c.chat_id == chat_id)
        query = query if before is None else query.where(chat_turns.c.number < before)
        rows = await self._database.mappings(query.order_by(chat_turns.c.number.desc()).limit(limit))
        return tuple(turn_of(row) for row in reversed(rows))

    async def of_message(self, chat_id: str, message_id: str) -> tuple[ChatTurn, ...]:
        """The message and its answer, as far as they are there."""
        async with self._database.read() as connection:
            return await _turns_of(connection, chat_id, message_id)

    async def page(self, *, limit: int, before: str | None = None, is_open: bool | None = None) -> tuple[ListedChat, ...]:
        """The one that was spoken to last comes first; those that were not spoken to since the chat `before`."""
        query = select(chats)
        if is_open is not None:
            query = query.where(chats.c.is_open.is_(is_open))
        if before is not None:
            since = select(chats.c.updated_at).where(chats.c.chat_id == before).scalar_subquery()
            query = query.where((chats.c.updated_at < since) | ((chats.c.updated_at == since) & (chats.c.chat_id > before)))
        rows = await self._database.mappings(query.order_by(chats.c.updated_at.desc(), chats.c.chat_id).limit(limit))
        return tuple(map(listed_of, rows))

    async def open_count(self) -> int:
        return await self._database.scalar(select(func.count()).select_from(chats).where(chats.c.is_open.is_(True))) or 0

    async def unended_tasks(self, chat_id: str) -> tuple[str, ...]:
        """Tasks that were begun for it and whose end it has not told."""
        of_it = select(chat_turns.c.message_id, chat_turns.c.task_ids).where(chat_turns.c.chat_id == chat_id)
        rows = await self._database.rows(of_it.where(chat_turns.c.role == ChatRole.ASSISTANT.value).order_by(chat_turns.c.number))
        told = {message_id for message_id, _ in rows}
        begun = [task_id for _, task_ids in rows if task_ids != "[]" for task_id in json.loads(task_ids)]
        return tuple(dict.fromkeys(task_id for task_id in begun if task_message_id(task_id) not in told))

    async def rest(self, chat_id: str) -> None:
        """Its workflow ends."""
        async with self._database.write_once() as connection:
            await connection.execute(update(chats).where(chats.c.chat_id == chat_id).values(is_open=False))

    async def forget(self, chat_id: str) -> bool:
        """The chat with all that was said and done in it, but for tasks that it began; False where there is none."""
        async with self._database.write(alone=_lock(chat_id)) as connection:
            own = select(chat_turns.c.number).where(chat_turns.c.chat_id == chat_id, chat_turns.c.role == ChatRole.USER.value)
            for (number,) in (await connection.execute(own)).all():
                conversation = conversation_of(chat_id, number)
                for named in _OF_A_CONVERSATION:
                    await connection.execute(delete(named.table).where(named == conversation))
                await release_files(connection, holder_of_conversation(conversation))
            await connection.execute(delete(chat_turns).where(chat_turns.c.chat_id == chat_id))
            await connection.execute(delete(chat_events).where(chat_events.c.chat_id == chat_id))
            gone = await connection.execute(delete(chats).where(chats.c.chat_id == chat_id))
        return gone.rowcount > 0

    async def _message_of(self, conversation_id: str) -> Sequence[tuple[str, str]]:
        _, key, number = conversation_id.split(":")
        query = select(chats.c.chat_id, chat_turns.c.message_id).join(chat_turns, chat_turns.c.chat_id == chats.c.chat_id)
        rows = await self._database.rows(query.where(chats.c.key == key, chat_turns.c.number == int(number)))
        return [(chat_id, message_id) for chat_id, message_id in rows]


def _lock(chat_id: str) -> str:
    """What transactions say as `alone` that give out numbers and positions of a chat."""
    return f"chat:{chat_key(chat_id)}"


async def _open(connection: AsyncConnection, chat_id: str) -> None:
    at = timestamp(now())
    row = {"chat_id": chat_id, "key": chat_key(chat_id), "turn_count": 0, "is_open": True, "created_at": at, "updated_at": at}
    await insert_new(connection, chats, [row])
    await connection.execute(update(chats).where(chats.c.chat_id == chat_id, chats.c.is_open.is_(False)).values(is_open=True))


async def _turns_of(connection: AsyncConnection, chat_id: str, message_id: str) -> tuple[ChatTurn, ...]:
    query = select(chat_turns).where(chat_turns.c.chat_id == chat_id, chat_turns.c.message_id == message_id).order_by(chat_turns.c.number)
    return tuple(turn_of(row) for row in (await connection.execute(query)).mappings())


def _unheard(answer: ChatTurn) -> list[JsonValue]:
    """Its text as chunks, where that was not told as it was written: what a model wrote before it failed does not count."""
    if answer.answered_by is AnsweredBy.MODEL and not answer.error:
        return []
    restart = [Chunk(type="restart")] if answer.error else []
    return [chunk.model_dump(mode="json") for chunk in (*restart, Chunk(type="text", data=answer.text))]


async def _append(connection: AsyncConnection, chat_id: str, turn: ChatTurn) -> ChatTurn:
    """In a transaction that has the lock of the chat. The turn with its number; of a chat that was deleted nothing is written."""
    count = update(chats).where(chats.c.chat_id == chat_id)
    count = count.values(turn_count=chats.c.turn_count + 1, updated_at=timestamp(turn.at)).returning(chats.c.turn_count)
    number = (await connection.execute(count)).scalar_one_or_none()
    if number is None:
        return turn
    numbered = turn.model_copy(update={"number": number})
    await connection.execute(insert(chat_turns).values(**turn_row(chat_id, numbered)))
    await _happened(connection, chat_id, ChatEventKind.MESSAGE, turn.message_id, [numbered.model_dump(mode="json")])
    return numbered


async def _happened(connection: AsyncConnection, chat_id: str, event: ChatEventKind, message_id: str, data: Sequence[JsonValue]) -> None:
    """In a transaction that has the lock of the chat."""
    last = (await connection.execute(_last_position(chat_id))).scalar() or 0
    at = now()
    rows = [event_row(chat_id, position, at, event, message_id, one) for position, one in enumerate(data, start=last + 1)]
    await connection.execute(insert(chat_events), rows)


async def _forget_chunks(connection: AsyncConnection, chat_id: str) -> None:
    last = (await connection.execute(_last_position(chat_id))).scalar() or 0
    old = (
        chat_events.c.chat_id == chat_id,
        chat_events.c.position <= last - _KEPT_EVENTS,
        chat_events.c.event == ChatEventKind.CHUNK.value,
    )
    await connection.execute(delete(chat_events).where(*old))


def _last_position(chat_id: str) -> Select[int]:
    return select(func.max(chat_events.c.position)).where(chat_events.c.chat_id == chat_id)
