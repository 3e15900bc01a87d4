"""Secrets by name: from the environment, or from the file `secrets` in the state directory (mode 0600)."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from threading import Lock

from engine.registry.secret_vault import SecretRefusedError
from workers.failures import CannotRun

__all__ = ["SecretSource"]

_PREFIX = "TOOL_AGENT_SECRET_"


class SecretSource:
    """The environment goes before the file, whose lines are `NAME=value`."""

    def __init__(self, environment: Mapping[str, str], file: Path) -> None:
        self._environment = environment
        self._file = file
        self._turn = Lock()

    def resolve(self, name: str) -> str | None:
        """The secret behind `NAME` or `secret:NAME`; None when there is none."""
        bare = name.removeprefix("secret:")
        return self._environment.get(f"{_PREFIX}{bare}") or self._from_file().get(bare)

    def keep(self, name: str, value: str) -> str:
        """Write a secret down under this name, or `NAME_2` and so on when another value has it. Returns the name.

        Raises SecretRefusedError. Whoever dies in here leaves the file as it was, or with the new line.
        """
        if value.splitlines() != [value] or "\0" in value:
            raise SecretRefusedError("it has more than one line.")
        with self._turn:
            chosen, number = name, 1
            while (there := self.resolve(chosen)) not in {None, value}:
                number += 1
                chosen = f"{name}_{number}"
            if there is None:
                self._add(chosen, value)
            return chosen

    def check(self) -> None:
        """Raises CannotRun when others may read the file."""
        if self._file.is_file() and not self._is_private():
            raise CannotRun(f"{self._file} may be read by others. Run `chmod 600` on it.")

    def _add(self, name: str, value: str) -> None:
        try:
            if self._file.is_file() and not self._is_private():
                raise SecretRefusedError(f"{self._file} may be read by others; run `chmod 600` on it.")
            before = self._file.read_bytes() if self._file.is_file() else b""
            end = b"" if not before or before.endswith(b"\n") else b"\n"
            # Made with mode 0600, beside the file it replaces.
            descriptor, temporary = tempfile.mkstemp(dir=self._file.parent, prefix=".secrets-")
            with os.fdopen(descriptor, "wb") as target:
                target.write(before + end + f"{name}={value}\n".encode())
                target.flush()
                os.fsync(target.fileno())
            Path(temporary).replace(self._file)
        except (OSError, UnicodeEncodeError) as error:
            raise SecretRefusedError(f"{self._file} cannot be written ({type(error).__name__}).") from error

    def _is_private(self) -> bool:
        return self._file.stat().st_mode & 0o077 == 0

    def _from_file(self) -> dict[str, str]:
        """What became readable by others since the start is no secret any more, and is not used."""
        if not self._file.is_file() or not self._is_private():
            return {}
        lines = self._file.read_text(encoding="utf-8").splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
