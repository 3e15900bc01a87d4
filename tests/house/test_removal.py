"""Folders are removed only by `engine.disk`: other ways follow links, recurse, or ignore failures."""

import re
from collections.abc import Iterator
from pathlib import Path

PRODUCT = ("engine", "workflows", "activities", "api", "workers", "tool_agent", "packages")
ONE = Path("engine/disk")
OTHERS = re.compile(r"\b(rmtree|TemporaryDirectory|removedirs|os\.walk)\b")
"""The last recurses in this Python: what is deep, it does not see."""
BOUNDED = frozenset(
    {
        Path("engine/making/inside/working_folder.py"),
        Path("engine/making/programs/inside/program.py"),
        Path("engine/registry/archives.py"),
        Path("engine/runtimes/sandbox/levels/watch.py"),
        Path("packages/toolagent/src/toolagent/validation/tool_folders.py"),
    }
)
"""These walk over folders of the operator, or no deeper than they say; or in a sandbox, over what is its own."""


def _finds(path: Path, text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        if (found := OTHERS.search(line.partition("#")[0])) and not (found[0] == "os.walk" and (path in BOUNDED or "`os.walk`" in line)):
            yield f"line {number}: {found[0]}"


def test_folders_are_removed_in_one_way(root: Path, files: tuple[Path, ...]) -> None:
    ours = [path for path in files if path.suffix == ".py" and path.parts[0] in PRODUCT and not path.is_relative_to(ONE)]
    assert {str(path): found for path in ours if (found := [*_finds(path, (root / path).read_text("utf-8"))])} == {}


def test_another_way_is_found() -> None:
    text = "shutil.rmtree(folder)\nwith TemporaryDirectory() as name:\nfor a, b, c in os.walk(x):\n    pass  # not by rmtree\n"
    assert [*_finds(Path("engine/a.py"), text)] == ["line 1: rmtree", "line 2: TemporaryDirectory", "line 3: os.walk"]
