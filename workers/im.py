"""The IM client of a process, where an IM server is set."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from filelock import FileLock, Timeout

from engine.im.answering import Answering
from engine.im.client import Bounds, ImClient
from engine.im.connection import Line
from engine.im.notices import Notices
from workers.failures import CannotRun
from workers.settings.environment import environment
from workers.settings.im import ImSettings
from workers.state.directory import StateDirectory
from workers.state.secrets import SecretSource

TOKEN = "IM_TOKEN"  # noqa: S105 - its name
"""The secret that the IM server is shown: `TOOL_AGENT_SECRET_IM_TOKEN`."""


@dataclass(frozen=True, slots=True)
class RunningIm:
    client: ImClient
    task: asyncio.Task[None]

    async def ended(self) -> None:
        """Raises what went wrong when it ends although nobody asked it to."""
        try:
            await asyncio.shield(self.task)
        except ExceptionGroup as parts:
            raise parts.exceptions[0] from parts


@asynccontextmanager
async def running_im(
    settings: ImSettings, state: StateDirectory, answering: Answering, notices: Notices
) -> AsyncGenerator[RunningIm | None]:
    """Connected, or trying to be, until the block ends; None where no server is set. Raises CannotRun."""
    if settings.im_url is None:
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
    line = Line(
        settings.im_url,
        settings.im_contact_id,
        SecretSource(environment(), state.root / "secrets").resolve(TOKEN),
        settings.im_max_frame_bytes,
        settings.im_heartbeat_s,
    )
    client = ImClient(line, folder, answering, notices, Bounds(settings.im_answers_at_once, settings.im_windows))
    running = asyncio.create_task(client.run(), name="im")
    try:
        yield RunningIm(client, running)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        lock.release()
