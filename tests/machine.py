"""Skips for machines that lack something, and a reader without root's rights."""

import ctypes
from collections.abc import Generator
from contextlib import contextmanager
from typing import NoReturn

import pytest

from workers.settings.environment import environment

__all__ = ["lacking", "read_as_its_owner"]

_CAPABILITIES_V3 = 0x20080522
_READS_ALL = 0b110
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH."""


def lacking(what: str) -> NoReturn:
    """Skips the test with this reason; fails it where everything is required."""
    if environment().get("CI") == "true":
        pytest.fail(what)
    pytest.skip(what)


@contextmanager
def read_as_its_owner() -> Generator[None]:
    """This thread, even of root, may read only what the mode of a file or folder permits."""
    libc = ctypes.CDLL(None)
    header, held = (ctypes.c_uint32 * 2)(_CAPABILITIES_V3, 0), (ctypes.c_uint32 * 6)()
    assert libc.capget(header, held) == 0
    effective, *others = held
    assert libc.capset(header, (ctypes.c_uint32 * 6)(effective & ~_READS_ALL, *others)) == 0
    try:
        yield
    finally:
        assert libc.capset(header, held) == 0
