"""Notes Ctrl-C during a request, so that commands act on it between requests."""

import signal
import time
from types import FrameType, TracebackType
from typing import Self

__all__ = ["CtrlC"]

_LOOK_S = 0.05


class CtrlC:
    """Notes the first Ctrl-C. The second one raises KeyboardInterrupt, as usual.

    KeyboardInterrupt in the middle of a request could be lost in a finalizer, or leave the lock of the connection pool taken, so that
    the request to cancel would never end. If Ctrl-C is ignored, or has another handler, that does not change.
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
        """Sleep for so long, or until the first Ctrl-C."""
        was_pressed, until = self.is_pressed, time.monotonic() + seconds
        while self.is_pressed == was_pressed and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, _LOOK_S))

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.is_pressed = True
        signal.signal(signal.SIGINT, signal.default_int_handler)
