"""One request on its way to a tool, with what goes with it."""

from dataclasses import dataclass, field
from typing import Protocol

from engine.runtimes.runtime import ToolRequest
from toolagent.contracts.catalog import ToolEntry


class Marks(Protocol):
    """Told when a request leaves, before it does."""

    async def before_send(self) -> None:
        """May raise to stop it."""
        ...

    async def after_not_sent(self) -> None:
        """It turned out that nothing had left."""
        ...


class _Unmarked:
    async def before_send(self) -> None:
        return

    async def after_not_sent(self) -> None:
        return


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Times are in seconds, None is without end.

    `slot_timeout_s` is for one of the tool's own slots, and from there `start_timeout_s` for all that is built and started before the
    request leaves, whatever the number of sources.
    """

    entry: ToolEntry
    request: ToolRequest
    marks: Marks = field(default_factory=_Unmarked)
    slot_timeout_s: float | None = None
    start_timeout_s: float | None = None
