"""Secrets by name: from the environment, or from the file `secrets` in the state directory (mode 0600)."""

import hmac
import os
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from engine.registry.secret_vault import SecretRefusedError
from workers.failures import cannot_run_on
from workers.settings.environment import environment
from workers.state.directory import StateDirectory

_PREFIX = "TOOL_AGENT_SECRET_"


class _UnusableError(Exception):
    """The file cannot be used; the text says why, and what to do."""


def secrets_of(state: StateDirectory) -> "SecretSource":
    """The secrets of this process and of its state directory."""
    return SecretSource(environment(), state.root / "secrets")


class SecretSource:
    """The environment takes precedence over the file, whose lines are `NAME=value`."""

    def __init__(self, environment: Mapping[str, str], file: Path) -> None:
        self._environment, self._file, self._turn = environment, file, Lock()

    def resolve(self, name: str) -> str | None:
        """The secret behind `NAME` or `secret:NAME`; None when there is none."""
        bare = name.removeprefix("secret:")
        return self._environment.get(f"{_PREFIX}{bare}") or self._from_file().get(bare)

    def names(self) -> frozenset[str]:
        """The names in the file."""
        return frozenset(self._from_file())

    def keep(self, name: str, value: str) -> None:
        """Write a secret into the file, unless the name has a value already. Raises SecretRefusedError.

        A crash leaves the file as it was, or with the new line.
        """
        _require_line(value)
        with self._changing():
            if self.resolve(name) is None:
                self._write(name, value)

    def replace(self, name: str, value: str) -> None:
        """Write a secret into the file in place of an earlier value. Raises SecretRefusedError.

        Writes nothing if the environment has this value, and refuses if it has another one.
        """
        _require_line(value)
        if there := self._environment.get(f"{_PREFIX}{name}"):
            if hmac.compare_digest(there.encode(), value.encode()):
                return
            raise SecretRefusedError(f"{_PREFIX}{name} is set to another value, and goes before. Unset it, or give that value.")
        with self._changing():
            self._write(name, value)

    def forget(self, name: str) -> None:
        """Remove a secret from the file, if it is there. Raises SecretRefusedError."""
        with self._changing():
            if name in self._from_file():
                self._write(name, None)

    def check(self) -> None:
        """Raises CannotRun if others may read the file, or if it cannot be read as UTF-8."""
        with cannot_run_on(_UnusableError):
            self._text()

    @contextmanager
    def _changing(self) -> Generator[None]:
        """Raises SecretRefusedError if the file cannot be used."""
        with self._turn:
            try:
                self._text()
            except _UnusableError as error:
                raise SecretRefusedError(str(error)) from error
            yield

    def _write(self, name: str, value: str | None) -> None:
        """Keeps all other lines as they are."""
        try:
            lines = self._file.read_bytes().splitlines(keepends=True) if self._file.is_file() else []
            before = b"".join(line for line in lines if not line.startswith(f"{name}=".encode()))
            end = b"" if not before or before.endswith(b"\n") else b"\n"
            line = b"" if value is None else f"{name}={value}\n".encode()
            # Created with mode 0600, beside the file that it replaces.
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
        """Raises _UnusableError, without its cause: the content of the file must not be in a traceback."""
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
        """Empty if the file has become unusable since the start, for example because others may read it now."""
        try:
            lines = self._text().splitlines()
        except _UnusableError:
            return {}
        return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def _require_line(value: str) -> None:
    if value.splitlines() != [value] or "\0" in value:
        raise SecretRefusedError("it has more than one line.")
