"""A folder of the system's temporary directory that is gone after use."""

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from engine.disk.leftovers import discard


@contextmanager
def temporary_folder(prefix: str) -> Generator[Path]:
    """Ours alone. Raises OSError. Blocks."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        yield folder
    finally:
        discard(folder)
