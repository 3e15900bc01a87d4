"""Errors that keep the service from starting or going on, shown to people without a traceback."""

from collections.abc import Generator
from contextlib import contextmanager


class CannotRun(Exception):
    """The message says what is wrong and what to do about it."""


@contextmanager
def cannot_run_on(*errors: type[Exception], remedy: str = "") -> Generator[None]:
    """Raises CannotRun with the text of these errors, and a remedy."""
    try:
        yield
    except errors as error:
        raise CannotRun(f"{error}{remedy}") from error
