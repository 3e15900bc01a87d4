"""One start with many waiters."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Generic, TypeVar

from engine.runtimes.failures import stopped
from engine.runtimes.runtime import Progress

S = TypeVar("S")
T = TypeVar("T")


class SharedStart(Generic[S, T]):
    """Runs once, tells its progress to all waiters, and is cancelled when the last one stops waiting. `subject`: what it starts."""

    def __init__(self, subject: S, work: Callable[[Progress], Coroutine[None, None, T]]) -> None:
        self.subject = subject
        self._listeners: list[Progress] = []
        self._cancelled = False
        self._task = asyncio.create_task(work(self._tell))
        # Reads the outcome if no waiter is left: otherwise asyncio would complain.
        self._task.add_done_callback(lambda task: task.cancelled() or task.exception())

    @property
    def is_open(self) -> bool:
        """Whether more waiters may join."""
        return not self._cancelled and not self._task.done()

    @property
    def is_over(self) -> bool:
        return self._task.done()

    async def wait(self, progress: Progress) -> T:
        """The outcome of the work, or its exception. Raises NotSent if others cancelled it."""
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
        """Waits until the work has ended, in success or failure."""
        await asyncio.wait([self._task])

    async def cancel(self) -> None:
        """Cancels the work and waits until it has cleaned up."""
        self._cancelled = True
        self._task.cancel()
        await self.over()

    def _tell(self, message: str) -> None:
        for progress in self._listeners:
            progress(message)
