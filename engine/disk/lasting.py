"""Writes that survive a crash of the process or the machine: complete, or not at all."""

import os
from pathlib import Path


def write_lasting(path: Path, content: bytes) -> None:
    """Replace the file's content. Raises OSError. Blocks."""
    part = path.with_name(f"{path.name}.part")
    with part.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    sync_folder(path.parent)


def append_lasting(path: Path, content: bytes) -> None:
    """Append to the file. An incomplete write is undone. Raises OSError. Blocks."""
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
    """Make new names in the folder survive a loss of power."""
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
