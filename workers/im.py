"""The IM client of a process."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from filelock import FileLock, Timeout
from temporalio.client import Client

from engine.im.client import Bounds, ImClient
from engine.im.connection import Line
from engine.im.conversations import ConversationAnswers, ConversationNotices
from engine.store.chat_sayings import ChatSayings
from engine.store.chats import ChatTable
from engine.store.database import Database
from engine.upkeep.rounds import repeated
from toolagent.client import names
from toolagent.client.chats import Chats
from workers.failures import CannotRun
from workers.settings.whole import Settings
from workers.state.directory import StateDirectory
from workers.state.secrets import secrets_of

TOKEN = "IM_TOKEN"  # noqa: S105 - its name
"""The name of the secret for the IM server: `TOOL_AGENT_SECRET_IM_TOKEN`."""

_FORGET_S = 600.0


@dataclass(frozen=True, slots=True)
class RunningIm:
    client: ImClient
    task: asyncio.Task[None]
    address: str

    async def ended(self) -> None:
        """Raises the error if the client ends without being asked to."""
        try:
            await asyncio.shield(self.task)
        except ExceptionGroup as parts:
            raise parts.exceptions[0] from parts


@asynccontextmanager
async def running_im(settings: Settings, state: StateDirectory, temporal: Client, database: Database) -> AsyncGenerator[RunningIm | None]:
    """The client, connected or trying to connect, until the block ends; None if no server is set. Raises CannotRun."""
    im = settings.im
    if im.im_url is None:
        yield None
        return
    folder = state.root / "im"
    folder.mkdir(exist_ok=True, mode=0o700)
    lock = FileLock(folder / "owner.lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise CannotRun(
            f"Another process has the IM windows of the state directory {str(state.root)!r}. Stop it, or unset TOOL_AGENT_IM_URL here."
        ) from None
    line = Line(im.im_url, im.im_contact_id, secrets_of(state).resolve(TOKEN), im.im_max_frame_bytes, im.im_heartbeat_s)
    answering = ConversationAnswers(Chats(temporal), settings.chats.chat_message_bytes, names.CHAT_FULL)
    client = ImClient(line, folder, answering, ConversationNotices(ChatSayings(database)), Bounds(im.im_answers_at_once, im.im_windows))
    running = asyncio.create_task(client.run(), name="im")
    forget = partial(client.windows.forget_gone, ChatTable(database).known)
    try:
        async with repeated(forget, _FORGET_S, "windows whose chats are gone"):
            yield RunningIm(client, running, line.shown)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        lock.release()
