"""No files of an ended call stay, wherever its tool wrote them."""

import os
from pathlib import Path

from engine.calls.call_folders import CallFolders
from engine.disk.leftovers import LEFTOVERS
from toolagent.contracts.manifest import ToolManifest

TOOL = ToolManifest(tool_id="t", name="T", output_schema={"properties": {"file": {"type": "string", "format": "file-path"}}})


def deep(folder: Path, levels: int) -> None:
    here = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=here)
        deeper = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(os.open("f", os.O_CREAT, dir_fd=here))
    os.close(here)


async def test_1500_nested_folders_in_an_output_folder_do_not_stay(tmp_path: Path) -> None:
    async with CallFolders(tmp_path, patience_s=60).of("call-1", TOOL) as folder:
        deep(folder.outputs, 1_500)
    assert folder.left is None
    assert list((tmp_path / "t").iterdir()) == []


async def test_what_cannot_be_removed_is_told_and_goes_later(tmp_path: Path) -> None:
    async with CallFolders(tmp_path, patience_s=0).of("call-1", TOOL) as folder:
        (folder.outputs / "made").touch()
    assert folder.left is not None
    assert len(list((tmp_path / "t").iterdir())) == 1
    LEFTOVERS.sweep()
    assert list((tmp_path / "t").iterdir()) == []


async def test_what_a_tool_puts_beside_its_calls_is_swept_and_calls_that_run_stay(tmp_path: Path) -> None:
    folders = CallFolders(tmp_path)
    async with folders.of("call-1", TOOL) as moved, folders.of("call-2", TOOL) as runs:
        moved.outputs.parent.rename(tmp_path / "t" / "hidden")
        (tmp_path / "t" / "stray").touch()
        await moved.__aexit__()
        assert sorted(await folders.sweep()) == ["t/hidden", "t/stray"]
        assert ([path.name for path in (tmp_path / "t").iterdir()], runs.outputs.is_dir()) == (["call-2"], True)
    assert await folders.sweep() == ()
