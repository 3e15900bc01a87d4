"""A running server: its connection, and its process if it was started here."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

from engine.runtimes.local.launched import Launched
from engine.runtimes.mcp.session import Session
from engine.runtimes.process.processes import came_to, exit_text
from engine.runtimes.runtime import Running, ToolRequest

_TOLD_LINES = 20
_PATIENCE_S = 1.0


@dataclass(slots=True, eq=False)
class Server:
    """`launched` is None for a remote server. `secrets` are masked in its answers."""

    session: Session
    launched: Launched | None = None
    secrets: Sequence[str] = ()
    _is_closed: bool = field(default=False, init=False)

    @property
    def is_alive(self) -> bool:
        return self.session.is_open and (self.launched is None or not self.launched.process.has_ended)

    @property
    def log(self) -> str:
        """The end of its stderr."""
        return "\n".join(self.launched.process.stderr.last_lines(_TOLD_LINES)) if self.launched else ""

    async def ended(self) -> str:
        """Waits for the end of process or connection, and says how it ended. A process without a connection is useless: this ends it."""
        waiting = [asyncio.create_task(self.session.ended())]
        if self.launched is not None:
            waiting.append(asyncio.create_task(self.launched.process.exited()))
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            # Usually the other ends too. Then the rest of the output is read, and the exit code is known.
            await asyncio.wait(waiting, timeout=_PATIENCE_S)
        finally:
            for task in waiting:
                task.cancel()
        if self.launched is None:
            return f"its connection ended ({self.session.why})"
        process = self.launched.process
        closed_it = "" if process.has_ended else "closed its connection and was ended: "
        code = await process.kill()
        return f"{closed_it}{exit_text(code)}{came_to(process)}"

    async def stop(self, grace_s: float) -> None:
        """Closes its stdin and sends SIGTERM; after `grace_s` seconds SIGKILL."""
        await self.session.close()
        if self.launched is not None:
            await self.launched.process.stop(grace_s)

    async def close(self) -> None:
        """Ends it if need be, and frees all its resources. Idempotent."""
        if self._is_closed:
            return
        self._is_closed = True
        await self.session.close()
        if self.launched is not None:
            await self.launched.process.kill()
            await self.launched.stack.aclose()
            self.launched.audited.ended()

    @contextlib.asynccontextmanager
    async def noted(self, request: ToolRequest) -> AsyncGenerator[None]:
        """Writes the call to the audit if the server runs here."""
        if self.launched is None:
            yield
            return
        async with self.launched.audited.call(request):
            yield


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Up(Running):
    """A running server as the supervisor holds it."""

    server: Server
