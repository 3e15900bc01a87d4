"""How long a call may take to bring its tool up, over all sources together."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from engine.runtimes.failures import StartFailed
from engine.runtimes.runtime import Progress
from toolagent.contracts.calls import ErrorType

T = TypeVar("T")


class StartBudget:
    """Counts from now; `timeout_s` is in seconds, None is without end. Remembers what is being done, to say it when time is up."""

    def __init__(self, tool_id: str, timeout_s: float | None, progress: Progress) -> None:
        self._tool_id, self._timeout_s, self._progress = tool_id, timeout_s, progress
        self._ends = None if timeout_s is None else asyncio.get_running_loop().time() + timeout_s
        self._doing = "looking whether it runs"
        self.ran_out = False

    def tell(self, message: str) -> None:
        """A Progress."""
        self._doing = message
        self._progress(message)

    async def spend(self, work: Coroutine[None, None, T]) -> T:
        """The outcome of the work. Raises StartFailed (`unavailable`) when it is cancelled because the time is up."""
        limit = asyncio.timeout_at(self._ends)
        try:
            async with limit:
                return await work
        except TimeoutError:
            if not limit.expired():
                raise
            self.ran_out = True
            raise StartFailed(
                ErrorType.UNAVAILABLE,
                f"The tool {self._tool_id!r} was not up within {self._timeout_s:g} s; what was being done: {self._doing}.",
                {"timeout_s": self._timeout_s, "doing": self._doing},
            ) from None
