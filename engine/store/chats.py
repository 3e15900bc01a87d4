"""The archive of chats: their turns, and the events while a message is answered."""

import json
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple, TypeAlias
from uuid import uuid4

from pydantic import JsonValue
from sqlalchemy import Row, bindparam, delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from engine.store.chat_tables import chat_events, chat_turns, chats
from engine.store.clock import now, timestamp
from engine.store.database import DatabaseAccess, wait_alone
from engine.store.file_references import holder_of_conversation, release_files
from engine.store.rows.chat_rows import event_of, event_row, listed_of, reply_of, turn_of, turn_row
from engine.store.rows.upserts import batches
from engine.store.tables import messages, model_turns, task_notes, tool_outcomes
from toolagent.contracts.chats import AnsweredBy, ChatEvent, ChatEventKind, ChatReply, ChatRole, ChatTurn, Chunk, ListedChat
from toolagent.core.chats import chat_key, conversation_of, task_message_id

_chat = chats.c
_turn = chat_turns.c
_event = chat_events.c

_KEPT_EVENTS = 1_000
"""Events kept per chat: older chunks are removed."""

_FORGET_EVERY = 20
"""Turns between removals of old chunks."""

_Happening: TypeAlias = tuple[ChatEventKind, JsonValue]

_AT_ONCE = 500

# Building a statement takes longer than running it.
_OPENED = (
    select(_chat.key, _chat.is_open, chat_turns)
    .outerjoin(chat_turns, (_turn.chat_id == _chat.chat_id) & (_turn.message_id == bindparam("message")))
    .where(_chat.chat_id == bindparam("of"))
)
_COUNTED = (
    update(chats)
    .where(_chat.chat_id == bindparam("of"))
    .values(turn_count=_chat.turn_count + bindparam("more"), updated_at=bindparam("spoken_at"))
    .returning(_chat.turn_count)
)
_TURNS_OF = select(chat_turns).where(_turn.chat_id == bindparam("of"), _turn.message_id == bindparam("message")).order_by(_turn.number)
_UNTIL = (
    select(_turn.number, _turn.role, _turn.text)
    .join(chats, _chat.chat_id == _turn.chat_id)
    .where(_chat.key == bindparam("of_key"), _turn.number <= bindparam("at"))
    .order_by(_turn.number.desc())
    .limit(bindparam("most"))
)
_MESSAGE_OF = (
    select(_chat.chat_id, _turn.message_id)
    .join(chat_turns, _turn.chat_id == _chat.chat_id)
    .where(_chat.key == bindparam("of_key"), _turn.number == bindparam("at"))
)
_KEY = select(_chat.key).where(_chat.chat_id == bindparam("of"))
_LAST_POSITION = select(func.max(_event.position)).where(_event.chat_id == bindparam("of"))
_EARLIER = chat_events.alias()
_NEXT_POSITION = select(func.coalesce(func.max(_EARLIER.c.position), 0) + 1).where(_EARLIER.c.chat_id == bindparam("of"))
_NEW_TURN = insert(chat_turns)
_NEW_EVENTS = insert(chat_events).values(position=_NEXT_POSITION.scalar_subquery())

OF_A_CONVERSATION = (task_notes.c.task_id, messages.c.conversation_id, tool_outcomes.c.conversation_id, model_turns.c.conversation_id)


class Spoken(NamedTuple):
    """A turn in the form that a model gets."""

    number: int
    role: ChatRole
    text: str


class SaidMessage(NamedTuple):
    """A message, its answer if there is one, and the id of the conversation with a model about it."""

    turn: ChatTurn
    reply: ChatReply | None
    conversation_id: str


class ChatTable(DatabaseAccess):
    """Message and side identify a turn: of two writes, the first stands. All methods raise StoreUnavailableError."""

    async def say(self, chat_id: str, message_id: str, text: str) -> SaidMessage:
        """Record a message of the user. Opens the chat."""

        async def say(connection: AsyncConnection) -> SaidMessage:
            key, said, answer = await _opened(connection, chat_id, message_id)
            if said is None:
                (said,) = await _append(connection, chat_id, _saying(message_id, text, now()))
            return SaidMessage(said, reply_of(chat_id, answer) if answer else None, conversation_of(key, said.number))

        return await self._database.transact(say, alone=_lock(chat_id))

    async def exchange(self, chat_id: str, text: str, answer: ChatTurn) -> tuple[ChatTurn, ChatReply]:
        """Record a message together with its answer. Returns the message's turn and the answer that stands. Opens the chat."""
        then = _told(chat_id, answer)

        async def exchange(connection: AsyncConnection) -> tuple[ChatTurn, ChatReply]:
            _, said, stands = await _opened(connection, chat_id, answer.message_id)
            if said is None:
                said, stands = await _append(connection, chat_id, _saying(answer.message_id, text, answer.at), answer, then=then)
            elif stands is None:
                (stands,) = await _append(connection, chat_id, answer, then=then)
            return said, reply_of(chat_id, stands or answer)

        return await self._database.transact(exchange, alone=_lock(chat_id))

    async def answer(self, chat_id: str, answer: ChatTurn, *, ends: bool = True) -> ChatTurn:
        """Record the answer to a message, and return the answer that stands. `ends`: also write the events for waiting clients."""
        then = _told(chat_id, answer) if ends else ()
        return await self._database.transact(lambda connection: self._answer(connection, chat_id, answer, then=then), alone=_lock(chat_id))

    async def answer_within(self, connection: AsyncConnection, chat_id: str, answer: ChatTurn, unheard: Sequence[Chunk]) -> ChatTurn:
        """`answer` within the caller's transaction. `unheard`: chunks of the model that were not written yet."""
        await wait_alone(connection, _lock(chat_id))
        return await self._answer(connection, chat_id, answer, before=[*map(_chunk, unheard)], then=_told(chat_id, answer))

    async def _answer(
        self, connection: AsyncConnection, chat_id: str, answer: ChatTurn, *, before: Sequence[_Happening] = (), then: Sequence[_Happening]
    ) -> ChatTurn:
        _, stands = await _exchanged(connection, chat_id, answer.message_id)
        if stands is None:
            (stands,) = await _append(connection, chat_id, answer, before=before, then=then)
        return stands

    async def add_chunks(self, conversation_id: str, chunks: Sequence[Chunk]) -> None:
        """Write parts of the answer from this conversation with a model. Ignored if the chat was deleted."""
        for chat_id, message_id in await self._message_of(conversation_id):
            happened = partial(_happened, chat_id=chat_id, message_id=message_id, events=[_chunk(chunk) for chunk in chunks])
            await self._database.transact(happened, alone=_lock(chat_id))

    async def conversation(self, chat_id: str, number: int) -> str:
        """The id of the conversation with a model about this message. For a deleted chat, a new random one."""
        return conversation_of(await self._database.scalar(_KEY, {"of": chat_id}) or uuid4().hex, number)

    async def chat_of(self, conversation_id: str) -> str | None:
        """The chat of a conversation with a model; None if it was deleted."""
        return next((chat_id for chat_id, *_ in await self._message_of(conversation_id)), None)

    async def events_after(self, chat_id: str, position: int, *, limit: int = _AT_ONCE) -> tuple[ChatEvent, ...]:
        """In order."""
        query = select(chat_events).where(_event.chat_id == chat_id, _event.position > position)
        return tuple(map(event_of, await self._database.mappings(query.order_by(_event.position).limit(limit))))

    async def last_position(self, chat_id: str) -> int:
        """The position of its last event; 0 if there is none."""
        return await self._database.scalar(_LAST_POSITION, {"of": chat_id}) or 0

    async def position_before(self, chat_id: str, message_id: str) -> int:
        """The position before the first event of this message; the last position if it has no event yet."""
        query = select(func.min(_event.position)).where(_event.chat_id == chat_id, _event.message_id == message_id)
        first = await self._database.scalar(query)
        return first - 1 if first else await self.last_position(chat_id)

    async def get(self, chat_id: str) -> ListedChat | None:
        row = await self._database.mapping(select(chats).filter_by(chat_id=chat_id))
        return listed_of(row) if row else None

    async def known(self, chat_ids: Sequence[str]) -> frozenset[str]:
        """Those of these chats that exist."""
        known = [select(_chat.chat_id).where(_chat.chat_id.in_(some)) for some in batches(chat_ids, _AT_ONCE)]
        return frozenset([chat_id for query in known for chat_id in await self._database.scalars(query)])

    async def turns(self, chat_id: str, *, before: int | None = None, limit: int = 100) -> tuple[ChatTurn, ...]:
        """The last turns before a number, in order."""
        query = select(chat_turns).filter_by(chat_id=chat_id)
        query = query if before is None else query.where(_turn.number < before)
        rows = await self._database.mappings(query.order_by(_turn.number.desc()).limit(limit))
        return tuple(turn_of(row) for row in reversed(rows))

    async def said_until(self, conversation_id: str, most: int) -> list[Spoken]:
        """The message of a conversation with a model, after the turns before it. Empty if the chat was deleted."""
        key, number = _parts_of(conversation_id)
        rows = await self._database.rows(_UNTIL, {"of_key": key, "at": number, "most": most + 1})
        return [Spoken(at, ChatRole(role), text) for at, role, text in reversed(rows)]

    async def of_message(self, chat_id: str, message_id: str) -> tuple[ChatTurn, ...]:
        """The message and its answer, if they exist."""
        return tuple(map(turn_of, await self._database.mappings(_TURNS_OF, {"of": chat_id, "message": message_id})))

    async def page(self, *, limit: int, before: str | None = None, is_open: bool | None = None) -> tuple[ListedChat, ...]:
        """Chats by their last message, the latest first. With `before`: those after this chat in that order."""
        query = select(chats)
        if is_open is not None:
            query = query.where(_chat.is_open.is_(is_open))
        if before is not None:
            since = select(_chat.updated_at).filter_by(chat_id=before).scalar_subquery()
            query = query.where((_chat.updated_at < since) | ((_chat.updated_at == since) & (_chat.chat_id > before)))
        rows = await self._database.mappings(query.order_by(_chat.updated_at.desc(), _chat.chat_id).limit(limit))
        return tuple(map(listed_of, rows))

    async def open_count(self) -> int:
        return await self._database.scalar(select(func.count()).select_from(chats).where(_chat.is_open.is_(True))) or 0

    async def unended_tasks(self, chat_id: str) -> tuple[str, ...]:
        """Tasks begun for the chat whose end it has not reported."""
        of_it = select(_turn.message_id, _turn.task_ids).filter_by(chat_id=chat_id)
        rows = await self._database.rows(of_it.where(_turn.role == ChatRole.ASSISTANT.value).order_by(_turn.number))
        told = {message_id for message_id, _ in rows}
        begun = [task_id for _, task_ids in rows if task_ids != "[]" for task_id in json.loads(task_ids)]
        return tuple(dict.fromkeys(task_id for task_id in begun if task_message_id(task_id) not in told))

    async def rest(self, chat_id: str) -> None:
        """Note that its workflow ends."""
        await self._database.change(update(chats).filter_by(chat_id=chat_id).values(is_open=False))

    async def forget(self, chat_id: str, *, silent_since: str | None = None) -> bool:
        """Delete the chat with everything in it, except tasks that it began. False if there is no such chat.

        With `silent_since`, a timestamp, also False for a chat with a later message.
        """
        query = _KEY if silent_since is None else _KEY.where(_chat.updated_at < silent_since)
        async with self._database.write(alone=_lock(chat_id)) as connection:
            key = (await connection.execute(query, {"of": chat_id})).scalar_one_or_none()
            if key is None:
                return False
            own = select(_turn.number).filter_by(chat_id=chat_id, role=ChatRole.USER.value)
            for (number,) in (await connection.execute(own)).all():
                conversation = conversation_of(key, number)
                for named in OF_A_CONVERSATION:
                    await connection.execute(delete(named.table).where(named == conversation))
                await release_files(connection, holder_of_conversation(conversation))
            await connection.execute(delete(chat_turns).filter_by(chat_id=chat_id))
            await connection.execute(delete(chat_events).filter_by(chat_id=chat_id))
            await connection.execute(delete(chats).filter_by(chat_id=chat_id))
        return True

    async def _message_of(self, conversation_id: str) -> Sequence[Row[str, str]]:
        """The chat and the message that a conversation with a model is about."""
        key, number = _parts_of(conversation_id)
        return await self._database.rows(_MESSAGE_OF, {"of_key": key, "at": number})


def _parts_of(conversation_id: str) -> tuple[str, int]:
    """The chat's key and the message's number."""
    _, key, number = conversation_id.split(":")
    return key, int(number)


def _lock(chat_id: str) -> str:
    """The `alone` of transactions that assign numbers and positions in a chat."""
    return f"chat:{chat_key(chat_id)}"


async def _opened(connection: AsyncConnection, chat_id: str, message_id: str) -> tuple[str, ChatTurn | None, ChatTurn | None]:
    """Open the chat. Returns its key, the message and the answer, as far as they exist. Needs the lock of the chat."""
    rows = (await connection.execute(_OPENED, {"of": chat_id, "message": message_id})).mappings().all()
    if not rows:
        # A new key for each opening: after a deletion numbers start again, and earlier model output must not answer later messages.
        key, at = uuid4().hex, timestamp()
        row = {"chat_id": chat_id, "key": key, "turn_count": 0, "is_open": True, "created_at": at, "updated_at": at}
        await connection.execute(insert(chats), row)
        return key, None, None
    if not rows[0]["is_open"]:
        await connection.execute(update(chats).filter_by(chat_id=chat_id).values(is_open=True))
    return rows[0]["key"], *_sides([turn_of(row) for row in rows if row["number"] is not None])


async def _exchanged(connection: AsyncConnection, chat_id: str, message_id: str) -> tuple[ChatTurn | None, ChatTurn | None]:
    """The message and its answer, if they exist."""
    found = await connection.execute(_TURNS_OF, {"of": chat_id, "message": message_id})
    return _sides([turn_of(row) for row in found.mappings()])


def _sides(turns: Sequence[ChatTurn]) -> tuple[ChatTurn | None, ChatTurn | None]:
    of = {turn.role: turn for turn in turns}
    return of.get(ChatRole.USER), of.get(ChatRole.ASSISTANT)


def _saying(message_id: str, text: str, at: datetime) -> ChatTurn:
    return ChatTurn(number=0, role=ChatRole.USER, text=text, at=at, message_id=message_id)


def _told(chat_id: str, answer: ChatTurn) -> list[_Happening]:
    """The events for waiting clients: the text, if it was not streamed, and the end."""
    return [*map(_chunk, _unheard(answer)), (ChatEventKind.DONE, reply_of(chat_id, answer).model_dump(mode="json"))]


def _unheard(answer: ChatTurn) -> tuple[Chunk, ...]:
    """The chunks of an answer that was not streamed. A failed answer restarts: what the model wrote before does not count."""
    if answer.answered_by is AnsweredBy.MODEL and not answer.error:
        return ()
    text = Chunk(type="text", data=answer.text)
    return (Chunk(type="restart"), text) if answer.error else (text,)


def _chunk(chunk: Chunk) -> _Happening:
    return ChatEventKind.CHUNK, chunk.model_dump(mode="json")


async def _append(
    connection: AsyncConnection, chat_id: str, *turns: ChatTurn, before: Sequence[_Happening] = (), then: Sequence[_Happening] = ()
) -> Sequence[ChatTurn]:
    """Write turns about one message, and return them with their numbers. Writes nothing for a deleted chat. Needs the lock of the chat.

    The events `before` come before those of the turns, `then` after them.
    """
    told = {"of": chat_id, "more": len(turns), "spoken_at": timestamp(turns[-1].at)}
    number = (await connection.execute(_COUNTED, told)).scalar_one_or_none()
    if number is None:
        return turns
    first = number - len(turns) + 1
    numbered = [turn.model_copy(update={"number": at}) for at, turn in enumerate(turns, start=first)]
    await connection.execute(_NEW_TURN, [turn_row(chat_id, turn) for turn in numbered])
    said = [(ChatEventKind.MESSAGE, turn.model_dump(mode="json")) for turn in numbered]
    await _happened(connection, chat_id, turns[-1].message_id, (*before, *said, *then))
    # Only now and then, because it reads all old events.
    if number // _FORGET_EVERY > (first - 1) // _FORGET_EVERY:
        last = (await connection.execute(_LAST_POSITION, {"of": chat_id})).scalar_one()
        old = (_event.position <= last - _KEPT_EVENTS, _event.event == ChatEventKind.CHUNK.value)
        await connection.execute(delete(chat_events).where(_event.chat_id == chat_id, *old))
    return numbered


async def _happened(connection: AsyncConnection, chat_id: str, message_id: str, events: Sequence[_Happening]) -> None:
    """Write events at the next positions. Needs the lock of the chat."""
    at = timestamp()
    await connection.execute(_NEW_EVENTS, [{"of": chat_id, **event_row(chat_id, at, event, message_id, data)} for event, data in events])
