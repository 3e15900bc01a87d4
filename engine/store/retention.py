"""Removes old calls, tasks, chats and sessions, with their logs, conversations and ledgers.

Evidence stays with its versions.
"""

from collections.abc import Collection, Sequence
from datetime import timedelta

from sqlalchemy import Column, Select, and_, delete, func, select, tuple_

from engine.store.call_messages import call_messages
from engine.store.chat_tables import chats
from engine.store.chats import OF_A_CONVERSATION, ChatTable
from engine.store.clock import now, timestamp
from engine.store.database import Database
from engine.store.file_references import holder_of_call, holder_of_candidates, holder_of_conversation, release_files
from engine.store.session_names import forget_names, session_names
from engine.store.tables import calls, events, group_sessions, tasks
from toolagent.contracts.contract import Contract
from toolagent.core.chats import CONVERSATION_PREFIX
from toolagent_service.groups.sessions import launch_ids_of

_PAGE, _CALLS = 50, 500
_KEY = len(CONVERSATION_PREFIX) + 1, 32
"""Position and length of the chat's key in the id of a conversation."""
_OF_A_TASK = (*OF_A_CONVERSATION, tasks.c.task_id)


class _Adopted(Contract):
    call_id: str


class _Request(Contract):
    """The part of an `OpenSession` that names its launch. All versions of the service can read it."""

    adopts: _Adopted | None = None


async def forget_calls(database: Database, retention: timedelta) -> int:
    """Remove calls that ended before the retention, with their events and references to files. Returns how many.

    Launches of existing sessions stay: they tell which session owns what a provider runs.

    Works page by page, so that calls go on meanwhile. Several hosts may do this. Raises StoreUnavailableError.
    """
    forgotten, tool_id = 0, ""
    before = timestamp(now() - retention)
    # By another host's clock, sessions may have begun later than their launches ended.
    kept = await _launches(database, timestamp(now() - retention + timedelta(days=1)))
    # By tool, for which there is an index. An index of the time alone would slow down every call.
    while (tool_id := await database.scalar(select(func.min(calls.c.tool_id)).where(calls.c.tool_id > tool_id)) or "") != "":
        old = and_(calls.c.tool_id == tool_id, calls.c.created_at < before, calls.c.settled_at < before)
        at = ("", "")
        while page := await database.rows(_after(at).where(old)):
            at = page[-1][0], page[-1][1]
            gone = [call_id for _, call_id in page if call_id not in kept]
            await _forget_calls(database, gone)
            forgotten += len(gone)
    return forgotten


async def forget_tasks(database: Database, retention: timedelta) -> int:
    """Remove tasks that ended before the retention, one by one. Returns how many. Several hosts may do this.

    The sweep removes their large contents once nothing holds them. Raises StoreUnavailableError.
    """
    ended = select(tasks.c.task_id).where(tasks.c.ended_at < timestamp(now() - retention)).order_by(tasks.c.ended_at)
    return await _forget_all(database, ended)


async def forget_chats(database: Database, retention: timedelta) -> int:
    """Remove chats without a message since the retention, one by one. Returns how many. Raises StoreUnavailableError."""
    table, forgotten = ChatTable(database), 0
    while page := await _silent(database, before := timestamp(now() - retention)):
        for chat_id in page:
            forgotten += await table.forget(chat_id, silent_since=before)
    return forgotten


async def forget_left_over(database: Database) -> int:
    """Remove what was written for conversations after the deletion of their chats. Returns of how many. Raises StoreUnavailableError."""
    return sum([await _forget_all(database, _left_over(named)) for named in OF_A_CONVERSATION])


async def forget_sessions(database: Database, retention: timedelta) -> int:
    """Remove sessions that ended before the retention. Returns how many. Raises StoreUnavailableError."""
    over = group_sessions.c.ended_at < timestamp(now() - retention)
    async with database.write() as connection:
        # A host of an older version may have ended them without removing their names.
        await forget_names(connection, session_names.c.session_id.in_(select(group_sessions.c.session_id).where(over)))
        return (await connection.execute(delete(group_sessions).where(over))).rowcount


def _after(at: tuple[str, str]) -> Select[str, str]:
    by = calls.c.created_at, calls.c.call_id
    return select(*by).where(tuple_(*by) > at).order_by(*by).limit(_CALLS)


async def _launches(database: Database, before: str) -> Collection[str]:
    """Ids of the launches of sessions opened before then, even if this version cannot read their rows otherwise."""
    found, at, named = set[str](), "", group_sessions.c.session_id
    query = select(named, group_sessions.c.request).where(group_sessions.c.opened_at < before).order_by(named).limit(_CALLS)
    while page := await database.rows(query.where(named > at)):
        for at, request in page:
            adopts = _Request.model_validate_json(request).adopts
            found.update(launch_ids_of(at, adopts.call_id if adopts is not None else None))
    return found


def _left_over(named: Column[str]) -> Select[str]:
    is_known = select(chats.c.key).where(chats.c.key == func.substr(named, *_KEY)).exists()
    of_chats = and_(named >= CONVERSATION_PREFIX, named < CONVERSATION_PREFIX[:-1] + chr(ord(CONVERSATION_PREFIX[-1]) + 1))
    return select(named).distinct().where(of_chats, ~is_known)


async def _silent(database: Database, before: str) -> Sequence[str]:
    return await database.scalars(select(chats.c.chat_id).where(chats.c.updated_at < before).order_by(chats.c.updated_at).limit(_PAGE))


async def _forget_all(database: Database, ids: Select[str]) -> int:
    """Remove the tasks or conversations that this query finds, page by page. Returns how many."""
    forgotten = 0
    while page := await database.scalars(ids.limit(_PAGE)):
        for task_id in page:
            await _forget(database, task_id)
        forgotten += len(page)
    return forgotten


async def _forget(database: Database, task_id: str) -> None:
    async with database.write() as connection:
        for named in _OF_A_TASK:
            await connection.execute(delete(named.table).where(named == task_id))
        await release_files(connection, holder_of_conversation(task_id), holder_of_candidates(task_id))


async def _forget_calls(database: Database, call_ids: Sequence[str]) -> None:
    async with database.write() as connection:
        await release_files(connection, *map(holder_of_call, call_ids))
        for named in (events.c.call_id, call_messages.c.call_id, calls.c.call_id):
            await connection.execute(delete(named.table).where(named.in_(call_ids)))
