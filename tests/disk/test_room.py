"""Whether folders can be written."""

import errno
from pathlib import Path

import pytest

from engine.disk.room import require_writing, unwritten
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


@pytest.mark.parametrize(("number", "cause"), [(errno.ENOSPC, "disk_full"), (errno.EDQUOT, "disk_full"), (errno.EROFS, "cannot_write")])
def test_a_write_that_failed_says_whether_the_disk_is_full(number: int, cause: str) -> None:
    failure = unwritten("The folder", OSError(number, "It says so."))
    assert (failure.cause, failure.told.startswith("The folder")) == (cause, True)
