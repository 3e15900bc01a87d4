"""One start that many wait for."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Generic, TypeVar

from engine.runtimes.failures import stopped
from engine.runtimes.runtime import Progress

S = TypeVar("S")
T = TypeVar("T")


class SharedStart(Generic[S, T]):
    """Runs once, tells all who wait of its progress, and is cancelled when the last of them stops waiting. `subject`: what is started."""

    def __init__(self, subject: S, work: Callable[[Progress], Coroutine[None, None, T]]) -> None:
        self.subject = subject
        self._listeners: list[Progress] = []
        self._cancelled = False
        self._task = asyncio.create_task(work(self._tell))
        # All waiters may have gone: then no one reads the outcome, and asyncio would complain.
        self._task.add_done_callback(lambda task: task.cancelled() or task.exception())

    @property
    def is_open(self) -> bool:
        """Whether more waiters may join."""
        return not self._cancelled and not self._task.done()

    @property
    def is_over(self) -> bool:
        return self._task.done()

    async def wait(self, progress: Progress) -> T:
        """The outcome of the work, which is raised if it is an exception. Raises NotSent when it was cancelled by others."""
        self._listeners.append(progress)
        try:
            return await asyncio.shield(self._task)
        except asyncio.CancelledError:
            me = asyncio.current_task()
            if me is None or me.cancelling() or not self._task.cancelled():
                raise
            raise stopped("The tool was stopped while it was starting.") from None
        finally:
            self._listeners.remove(progress)
            if not self._listeners and not self._task.done():
                await self.cancel()

    async def over(self) -> None:
        """Wait until it has ended, however."""
        await asyncio.wait([self._task])

    async def cancel(self) -> None:
        """End the work and wait until it has cleaned up after itself."""
        self._cancelled = True
        self._task.cancel()
        await self.over()

    def _tell(self, message: str) -> None:
        for progress in self._listeners:
            progress(message)
