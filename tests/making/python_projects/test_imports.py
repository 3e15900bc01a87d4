"""Which packages of others a file imports."""

from pathlib import Path, PurePosixPath

from engine.making.python_sources.imports import imported_by
from engine.making.repositories.trees import Tree


def test_packages_of_others_are_known_by_the_imports_of_a_file_and_of_what_lies_beside_it(tmp_path: Path) -> None:
    files = {
        "main.py": "import json, requests.auth\nfrom words import cut\nfrom parts.a import b\n",
        "words.py": "import main\ntry:\n    import yaml\nexcept ImportError:\n    pass\n",
        "parts/a.py": "from . import c\nimport numpy\n",
        "parts/c.py": "def late():\n    import PIL\n",
        "other.py": "import flask\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert imported_by(Tree.read(tmp_path), PurePosixPath("main.py")) == {"requests", "yaml", "numpy", "PIL"}
