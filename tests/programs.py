"""Programs that tests start: they end with the test run, however that ends."""

import atexit
import subprocess
from collections.abc import Sequence
from functools import cache
from typing import Any

from engine.runtimes.guardian import Guardian

__all__ = ["Program"]


class Program(subprocess.Popen[bytes]):
    """One in a session of its own, which a guardian kills when this process has died. A service then ends its own children."""

    def __init__(self, command: Sequence[str], **options: Any) -> None:
        guardian = _guardian()
        super().__init__(command, start_new_session=True, **options)
        guardian.watch(self.pid)


@cache
def _guardian() -> Guardian:
    guardian = Guardian()
    guardian.start()
    atexit.register(guardian.close)
    return guardian
