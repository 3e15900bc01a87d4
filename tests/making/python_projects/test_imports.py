"""Which third-party packages a file imports."""

import time
from pathlib import Path, PurePosixPath

from engine.making.python_sources.imports import folder_above, imported_by
from engine.making.repositories.trees import Tree
from tests.making.inspection.conftest import written


def test_packages_of_others_are_known_by_the_imports_of_a_file_and_of_what_lies_beside_it(tmp_path: Path) -> None:
    files = {
        "main.py": "import json, requests.auth\nfrom words import cut\nfrom parts.a import b\n",
        "words.py": "import main\nimport yaml\n",
        "parts/a.py": "from . import c\nimport numpy\n",
        "parts/c.py": "def late():\n    import PIL\n",
        "other.py": "import flask\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert imported_by(Tree.read(tmp_path), PurePosixPath("main.py")) == {"requests", "yaml", "numpy", "PIL"}


def test_what_a_file_can_do_without_or_another_system_has_is_not_counted(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(
        "import sys\nfrom typing import TYPE_CHECKING\n"
        "try:\n    import cudf\nexcept (OSError, ImportError):\n    import pandas\nelse:\n    import rich\n"
        "try:\n    import yaml\nexcept ImportError:\n    sys.exit('pip install pyyaml')\n"
        "try:\n    import numpy\nexcept ModuleNotFoundError as error:\n    raise SystemExit from error\n"
        "try:\n    import scipy\nexcept KeyError:\n    pass\n"
        "try:\n    import attrs\n    HAS_ATTRS = True\nexcept Exception:\n    HAS_ATTRS = False\n"
        "try:\n    import httpx\n    print(httpx.get('https://a.example'))\nexcept Exception as error:\n    print(error)\n"
        "if TYPE_CHECKING:\n    import mypy_extensions\n"
        "if sys.platform == 'win32':\n    import win32api\nelse:\n    import distro\n"
    )
    assert imported_by(Tree.read(tmp_path), PurePosixPath("main.py")) == {"pandas", "rich", "yaml", "numpy", "scipy", "httpx", "distro"}


def test_many_imports_beside_many_files_are_known_soon_and_no_more_than_so_many(tmp_path: Path) -> None:
    files = [PurePosixPath(f"parts/{number}.py") for number in range(20_000)]
    (tmp_path / "main.py").write_text("".join(f"import package_{number}\n" for number in range(1_000)))
    begun = time.process_time()
    found = imported_by(Tree(tmp_path, [PurePosixPath("main.py"), *files], 0, is_whole=True), PurePosixPath("main.py"))
    assert len(found) == 200
    assert time.process_time() - begun < 5


def test_a_folder_at_the_top_that_is_no_package_hides_no_package_of_others(tmp_path: Path) -> None:
    files = {"redis/dump.py": "", "speech/__init__.py": "import numpy\n", "tools/count.py": "import redis\nimport speech\n"}
    tree, file = Tree.read(written(tmp_path, files)), PurePosixPath("tools/count.py")
    assert imported_by(tree, file, from_top=True) == {"redis", "numpy"}
    assert imported_by(tree, file) == {"redis", "speech"}


def test_modules_are_needed_from_above_unless_they_are_optional(tmp_path: Path) -> None:
    files = {"config.py": "", "a/speech.py": "", "a/b/one.py": "try:\n    import config\nexcept ImportError:\n    config = None\n"}
    tree, folder = Tree.read(written(tmp_path, files | {"a/b/two.py": "import speech, yaml\n"})), PurePosixPath("a/b")
    assert folder_above(tree, folder, ["one.py"]) == folder
    assert folder_above(tree, folder, ["one.py", "two.py"]) == PurePosixPath("a")


def test_modules_that_a_module_beside_the_script_needs_from_above_count_too(tmp_path: Path) -> None:
    files = {"config.py": "", "b/one.py": "import beside\n", "b/beside.py": "import parts.x\n", "b/parts/x.py": "import config\n"}
    assert folder_above(Tree.read(written(tmp_path, files)), PurePosixPath("b"), ["one.py"]) == PurePosixPath()
