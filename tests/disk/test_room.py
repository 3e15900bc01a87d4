"""Whether folders can be written."""

from pathlib import Path

import pytest

from engine.disk.room import require_writing
from tests.disks import file_size_limit
from toolagent.core.failures import StoreUnwritableError


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def test_a_folder_that_cannot_be_written_is_named_and_nothing_is_left_in_it(tmp_path: Path) -> None:
    await require_writing({"The folder": tmp_path})
    with file_size_limit(1000), pytest.raises(StoreUnwritableError, match="The folder cannot be written: File too large"):
        await require_writing({"The folder": tmp_path})
    assert names_in(tmp_path) == []
    with pytest.raises(StoreUnwritableError, match="The other cannot be written: No such file"):
        await require_writing({"The other": tmp_path / "other"})
