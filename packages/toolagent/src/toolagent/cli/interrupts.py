"""Ctrl-C while the service is spoken to: noted, and acted on between requests."""

import signal
import time
from types import FrameType, TracebackType
from typing import Self

__all__ = ["CtrlC"]

_LOOK_S = 0.05


class CtrlC:
    """Within it the first Ctrl-C is noted, and the second one raises KeyboardInterrupt as anywhere.

    Raised in the middle of a request it could be lost in a finalizer, or leave the lock of the connection pool taken for ever, so that
    asking the service to cancel would never end. Where Ctrl-C is ignored, or somebody else handles it, that stays so.
    """

    def __init__(self) -> None:
        self.is_pressed = False

    def __enter__(self) -> Self:
        self._is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self._is_ours:
            signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._is_ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def pause(self, seconds: float) -> None:
        """Sleep, but no longer than until the first Ctrl-C, if that is still to come."""
        was_pressed, until = self.is_pressed, time.monotonic() + seconds
        while self.is_pressed == was_pressed and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, _LOOK_S))

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.is_pressed = True
        signal.signal(signal.SIGINT, signal.default_int_handler)
