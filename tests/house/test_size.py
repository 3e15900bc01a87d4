"""No module has more than 400 lines; no folder of the product has more than 16 modules, unless they are equals."""

from collections import Counter
from pathlib import Path

CEILING = 400
AT_A_GLANCE = 16
PRODUCT = ("activities", "api", "engine", "packages", "workers", "workflows")
PACKAGE = "packages/toolagent/src/toolagent"
EQUALS = {
    "activities": "an activity each",
    "api/routes": "a resource each",
    "engine/store": "a table each",
    "engine/store/migrations/versions": "a revision each",
    f"{PACKAGE}/cli": "a command each",
    f"{PACKAGE}/client": "others import them by these names",
    f"{PACKAGE}/contracts": "a contract each",
    f"{PACKAGE}/testing/servers": "a server each",
}
"""Folders that may hold more, by what their files are."""


def test_no_python_file_is_longer_than_the_ceiling(root: Path, files: tuple[Path, ...]) -> None:
    lengths = {str(path): len((root / path).read_text("utf-8").splitlines()) for path in files if path.suffix == ".py"}
    assert lengths, "git lists no Python file: the guard looks at nothing."
    assert {path: length for path, length in lengths.items() if length > CEILING} == {}


def test_a_folder_reads_at_a_glance_unless_its_files_are_equals(files: tuple[Path, ...]) -> None:
    modules = [path for path in files if path.parts[0] in PRODUCT and path.suffix == ".py" and path.stem != "__init__"]
    crowded = {folder: number for folder, number in Counter(str(path.parent) for path in modules).items() if number > AT_A_GLANCE}
    assert {folder: number for folder, number in crowded.items() if folder not in EQUALS} == {}, "Group its files into folders."
    assert [folder for folder in EQUALS if folder not in crowded] == [], "These need no exception."
