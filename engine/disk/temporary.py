"""Temporary folders."""

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from engine.disk.leftovers import discard


@contextmanager
def temporary_folder(prefix: str) -> Generator[Path]:
    """A private folder in the system's temporary directory, removed after the block. Raises OSError. Blocks."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        yield folder
    finally:
        discard(folder)
