"""Ends what was not used for a while: one task, which survives failures of what it ends."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, TypeVar

import structlog

T = TypeVar("T")
_LOOKS = 4
_LONGEST_LOOK_S = 30.0

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class UnusedTimer(Generic[T]):
    """Looks at `all_of_them` (by their names) several times in `ttl_s` seconds, and ends those that are unused.

    What could not be ended is logged, and tried again while it is among them. There is no await between `is_unused` and the
    first wait of `end`.
    """

    def __init__(
        self, ttl_s: float, all_of_them: Mapping[str, T], is_unused: Callable[[T], bool], end: Callable[[T], Awaitable[object]]
    ) -> None:
        self._pause_s = min(ttl_s / _LOOKS, _LONGEST_LOOK_S)
        self._all, self._is_unused, self._end = all_of_them, is_unused, end
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """May be repeated."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="unused containers")

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._pause_s)
            for name, one in [*self._all.items()]:
                if self._all.get(name) is one and self._is_unused(one):
                    await self._ended(name, one)

    async def _ended(self, name: str, one: T) -> None:
        try:
            await self._end(one)
        except Exception as error:  # noqa: BLE001 - whatever it was, all others must go in their time
            _log.warning("unused_container_not_ended", container=name, reason=f"{type(error).__name__}: {error}")
