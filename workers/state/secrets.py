"""Secrets by name: from the environment, or from the file `secrets` in the state directory (mode 0600)."""

import hmac
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from threading import Lock

from engine.registry.secret_vault import SecretRefusedError
from workers.failures import CannotRun

_PREFIX = "TOOL_AGENT_SECRET_"


class _UnusableError(Exception):
    """The file cannot be used; the text says why, and what to do."""


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

    def names(self) -> frozenset[str]:
        """Of those in the file."""
        return frozenset(self._from_file())

    def keep(self, name: str, value: str) -> None:
        """Write a secret down under this name, unless it has a value: that is somebody's decision, and stays.

        Raises SecretRefusedError. Whoever dies in here leaves the file as it was, or with the new line.
        """
        if value.splitlines() != [value] or "\0" in value:
            raise SecretRefusedError("it has more than one line.")
        with self._turn:
            self._require_usable()
            if self.resolve(name) is None:
                self._write(name, value)

    def replace(self, name: str, value: str) -> None:
        """Write a secret down under this name, in place of what the file has. Raises SecretRefusedError.

        Nothing is written where the environment has this value; another one there is refused.
        """
        if value.splitlines() != [value] or "\0" in value:
            raise SecretRefusedError("it has more than one line.")
        if there := self._environment.get(f"{_PREFIX}{name}"):
            if hmac.compare_digest(there.encode(), value.encode()):
                return
            raise SecretRefusedError(f"{_PREFIX}{name} is set to another value, and goes before. Unset it, or give that value.")
        with self._turn:
            self._require_usable()
            self._write(name, value)

    def forget(self, name: str) -> None:
        """Take a secret out of the file, if it is there. Raises SecretRefusedError."""
        with self._turn:
            self._require_usable()
            if name in self._from_file():
                self._write(name, None)

    def check(self) -> None:
        """Raises CannotRun when others may read the file, or when it cannot be read as UTF-8."""
        try:
            self._text()
        except _UnusableError as error:
            raise CannotRun(str(error)) from error

    def _require_usable(self) -> None:
        try:
            self._text()
        except _UnusableError as error:
            raise SecretRefusedError(str(error)) from error

    def _write(self, name: str, value: str | None) -> None:
        """All other lines stay as they are."""
        try:
            lines = self._file.read_bytes().splitlines(keepends=True) if self._file.is_file() else []
            before = b"".join(line for line in lines if not line.startswith(f"{name}=".encode()))
            end = b"" if not before or before.endswith(b"\n") else b"\n"
            line = b"" if value is None else f"{name}={value}\n".encode()
            # Made with mode 0600, beside the file it replaces.
            descriptor, temporary = tempfile.mkstemp(dir=self._file.parent, prefix=".secrets-")
            try:
                with os.fdopen(descriptor, "wb") as target:
                    target.write(before + end + line)
                    target.flush()
                    os.fsync(target.fileno())
                Path(temporary).replace(self._file)
            finally:
                # It holds all secrets, so it must not stay behind.
                Path(temporary).unlink(missing_ok=True)
        except (OSError, UnicodeEncodeError) as error:
            raise SecretRefusedError(f"{self._file} cannot be written ({type(error).__name__}).") from error

    def _text(self) -> str:
        """Raises _UnusableError. The causes are not chained: what is in the file must not be in a traceback."""
        try:
            if not self._file.is_file():
                return ""
            if self._file.stat().st_mode & 0o077:
                raise _UnusableError(f"{self._file} may be read by others. Run `chmod 600` on it.")
            return self._file.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            line = error.object.count(b"\n", 0, error.start) + 1
            raise _UnusableError(f"{self._file} is no UTF-8 text: see line {line}. Save it as UTF-8.") from None
        except OSError as error:
            raise _UnusableError(f"{self._file} cannot be read ({type(error).__name__}). Make it a file of our own user's.") from None

    def _from_file(self) -> dict[str, str]:
        """What has become unusable since the start, as when others may read it now, is no secret any more, and is not used."""
        try:
            lines = self._text().splitlines()
        except _UnusableError:
            return {}
        return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
