"""A source type is a file and a line in each of two registries: the lines are added to copies of these."""

import shutil
import subprocess
import sys
from pathlib import Path

from workers.settings.environment import environment

ROOT = Path(__file__).parents[2]
SEEN = Path(__file__).parent / "second_source/seen.py"
# What is installed, or of this folder, comes after the copies.
_PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "pythonpath=")
LINES = {
    "packages/toolagent/src/toolagent/contracts/sources/__init__.py": (
        ("\n__all__ =", "from tests.runtimes.second_source.source import TemplateSource\n\n__all__ ="),
        (",\n    Field(discriminator", "\n    | TemplateSource,\n    Field(discriminator"),
    ),
    "engine/runtimes/__init__.py": (
        ("\n__all__ =", "from tests.runtimes.second_source.runtime import TemplateRuntime\n\n__all__ ="),
        ('    "builtin": lambda', '    "template": lambda parts: TemplateRuntime(parts.projects),\n    "builtin": lambda'),
    ),
}


def test_a_second_source_type_is_a_file_and_a_line_in_each_of_two_registries(tmp_path: Path) -> None:
    for package in ("packages/toolagent/src/toolagent", "engine"):
        shutil.copytree(ROOT / package, tmp_path / "copies" / Path(package).name)
    for name, changes in LINES.items():
        file = tmp_path / "copies" / name.removeprefix("packages/toolagent/src/")
        text = file.read_text("utf-8")
        for before, after in changes:
            assert text.count(before) == 1
            text = text.replace(before, after)
        file.write_text(text, "utf-8")
    kept = {name: value for name, value in environment().items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [*_PYTEST, "-c", ROOT / "pyproject.toml", f"--basetemp={tmp_path / 'seen'}", SEEN],
        cwd=tmp_path / "copies",
        env={**kept, "PYTHONPATH": f"{tmp_path / 'copies'}:{ROOT}"},
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stdout
