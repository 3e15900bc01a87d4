"""Files that could not be removed at once: removal is retried until they are gone.

The process has one list (`LEFTOVERS`), so that code which fails to remove something need not report it.
"""

import os
import secrets
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import structlog

from engine.disk.removal import NotRemoved, remove

SET_ASIDE = ".gone-"
"""Prefix of the names of discarded folders that could not be removed; each lies beside its old place."""
PROMPT_S = 5.0
"""Seconds that a removal may take before it is left to the sweep."""
_TURN_S = 2.0

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Leftovers:
    """The list of files to remove. Thread-safe."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[int, int]] = {}
        self._turn = threading.Lock()

    @property
    def known(self) -> tuple[Path, ...]:
        return tuple(self._known)

    def discard(self, path: Path, patience_s: float = PROMPT_S) -> NotRemoved | None:
        """Remove the path now or later; returns the failure if not now. Frees its name if possible. Blocks."""
        try:
            remove(path, patience_s)
        except NotRemoved as error:
            self._note(path)
            _log.warning("not_removed", path=os.fsencode(path).decode("utf-8", "replace"), reason=error.reason)
            return error
        return None

    def sweep(self, turn_s: float = _TURN_S) -> Mapping[Path, str]:
        """Retry for `turn_s` seconds in all. Returns the paths that stay, with the reason; untried paths come first next time. Blocks."""
        until, stays = time.monotonic() + turn_s, dict[Path, str]()
        for path in self.known:
            if reason := self._again(path, max(0.0, until - time.monotonic())):
                stays[path] = reason
            if time.monotonic() > until:
                break
        return stays

    def _again(self, path: Path, turn_s: float) -> str:
        # If the name could not be freed, a new file may have it by now.
        if _identity(path) == self._known.get(path):
            try:
                remove(path, turn_s)
            except NotRemoved as error:
                with self._turn:
                    self._known[path] = self._known.pop(path)  # behind the others
                return error.reason
            _log.info("removed_leftover", path=os.fsencode(path).decode("utf-8", "replace"))
        with self._turn:
            self._known.pop(path, None)
        return ""

    def _note(self, path: Path) -> None:
        aside = path.with_name(f"{SET_ASIDE}{secrets.token_hex(8)}")
        try:
            path.rename(aside)
        except OSError:  # the obstacle to removal may also prevent the rename
            aside = path
        if (identity := _identity(aside)) is not None:
            with self._turn:
                self._known[aside] = identity


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


LEFTOVERS = Leftovers()

discard = LEFTOVERS.discard
