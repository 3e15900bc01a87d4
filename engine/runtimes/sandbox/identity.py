"""The ordinary user that programs in a sandbox are, when the worker itself is root."""

import os
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PAYLOAD", "Identity"]


@dataclass(frozen=True, slots=True)
class Identity:
    """A user and a group of the host, by number. They need no name, and should have nothing else."""

    uid: int
    gid: int

    def own(self, path: Path) -> None:
        """Hand over a file or folder, not what is in it. Raises OSError."""
        os.chown(path, self.uid, self.gid, follow_symlinks=False)


PAYLOAD = Identity(64_321, 64_321)
"""Outside of what Debian gives to people and services (policy manual, 9.2.2)."""
