"""Secrets by name: from the environment, or from the file `secrets` in the state directory (mode 0600)."""

from collections.abc import Mapping
from pathlib import Path

from workers.failures import CannotRun

__all__ = ["SecretSource"]

_PREFIX = "TOOL_AGENT_SECRET_"


class SecretSource:
    """The environment goes before the file, whose lines are `NAME=value`."""

    def __init__(self, environment: Mapping[str, str], file: Path) -> None:
        self._environment = environment
        self._file = file

    def resolve(self, name: str) -> str | None:
        """The secret behind `NAME` or `secret:NAME`; None when there is none."""
        bare = name.removeprefix("secret:")
        return self._environment.get(f"{_PREFIX}{bare}") or self._from_file().get(bare)

    def check(self) -> None:
        """Raises CannotRun when others may read the file."""
        if self._file.is_file() and not self._is_private():
            raise CannotRun(f"{self._file} may be read by others. Run `chmod 600` on it.")

    def _is_private(self) -> bool:
        return self._file.stat().st_mode & 0o077 == 0

    def _from_file(self) -> dict[str, str]:
        """What became readable by others since the start is no secret any more, and is not used."""
        if not self._file.is_file() or not self._is_private():
            return {}
        lines = self._file.read_text(encoding="utf-8").splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
