"""What the errors of disks and object stores mean to whoever stores a file."""

import errno
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from toolagent.core.failures import ContentUnavailableError, StoreFullError

# A quota and a limit on the size of files are full disks, too.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@contextmanager
def named_disk_faults(folder: Path) -> Generator[None]:
    """Raises StoreFullError or ContentUnavailableError in place of an OSError."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise StoreFullError(f"There is no room for the file in {folder} ({error.strerror}).") from error
        raise ContentUnavailableError(f"Files cannot be kept in {folder} ({error.strerror}).") from error
