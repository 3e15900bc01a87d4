"""No module is longer than 400 lines; there is no list of exceptions."""

from pathlib import Path

CEILING = 400


def test_no_python_file_is_longer_than_the_ceiling(root: Path, files: tuple[Path, ...]) -> None:
    lengths = {str(path): len((root / path).read_text("utf-8").splitlines()) for path in files if path.suffix == ".py"}
    assert lengths, "git lists no Python file: the guard looks at nothing."
    assert {path: length for path, length in lengths.items() if length > CEILING} == {}
