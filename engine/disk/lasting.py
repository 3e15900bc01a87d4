"""Files that survive a crash of the process or the machine: whole, or as they were."""

import os
from pathlib import Path


def write_lasting(path: Path, content: bytes) -> None:
    """In place of what is there. Raises OSError. Blocks."""
    part = path.with_name(f"{path.name}.part")
    with part.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    sync_folder(path.parent)


def append_lasting(path: Path, content: bytes) -> None:
    """At the end of the file. Nothing is left of what could not be written whole. Raises OSError. Blocks."""
    with path.open("ab", buffering=0) as file:
        end = file.seek(0, os.SEEK_END)
        try:
            rest = memoryview(content)
            while rest:
                rest = rest[file.write(rest) :]
            os.fsync(file.fileno())
        except OSError:
            file.truncate(end)
            raise


def sync_folder(folder: Path) -> None:
    """A new name has to survive a loss of power as the bytes do."""
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
