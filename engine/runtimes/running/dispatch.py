"""One request for the supervisor, with its marks and time limits."""

from dataclasses import dataclass, field
from typing import Protocol

from engine.runtimes.runtime import ToolRequest
from toolagent.contracts.catalog import ToolEntry


class Marks(Protocol):
    """Records that a request is sent."""

    async def before_send(self) -> None:
        """Called before the request is sent. May raise to stop it."""
        ...

    async def after_not_sent(self) -> None:
        """Called if it turns out that nothing was sent."""
        ...


class _Unmarked:
    async def before_send(self) -> None:
        return

    async def after_not_sent(self) -> None:
        return


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Times are in seconds; None is unlimited.

    `slot_timeout_s` limits the wait for one of the tool's own slots. From there `start_timeout_s` limits all building and starting before
    the request is sent, over all sources.
    """

    entry: ToolEntry
    request: ToolRequest
    marks: Marks = field(default_factory=_Unmarked)
    slot_timeout_s: float | None = None
    start_timeout_s: float | None = None
