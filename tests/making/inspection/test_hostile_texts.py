"""Texts with which a reader could need quadratic time.

They are read on the host, where other work waits meanwhile.
"""

import time
from pathlib import Path, PurePosixPath

import pytest

from engine.making.inspection import inspect
from engine.making.python_sources.asgi_apps import FRAMEWORKS, apps_in
from engine.making.python_sources.modules import parsed
from engine.making.python_sources.projects import pyproject_of
from engine.making.python_sources.variables import variables_for
from engine.making.repositories.trees import Tree

FILES = (
    "Dockerfile",
    "README.md",
    "main.py",
    "mcp.json",
    "openapi.json",
    "openapi.yaml",
    "package.json",
    "pyproject.toml",
    "requirements.txt",
    "setup.cfg",
    "setup.py",
    "x.tool.json",
)
MOST = 512 * 1024
MOST_OF_TOML = 256 * 1024
REPEATED = {
    "blank lines": "\n",
    "lists that never end": "scripts=[",
    "lists that are not closed": "scripts=[' ",
    "groups that never end": "console_scripts",
}
WHOLE = {
    "an entry that never ends": "console_scripts 'a=b:" + "c" * (MOST - 40) + "]",
    "lines that are no settings": "[x]\n" + "a\n" * (MOST // 2 - 4),
    "a variable that never ends": "FROM x\nENV " + "a" * MOST,
    "defaults that never end": "FROM x\nEXPOSE " + "${a:-" * (MOST // 5),
    "a setting with space": "[options.entry_points]\na" + " " * (MOST - 40) + "b",
    "a key of many parts": "a." * (MOST_OF_TOML // 2 - 4) + "a = 1",
    "a key of many quoted parts": '"$".' * (MOST_OF_TOML // 4 - 4) + "a = 1",
    "a key of parts with spaces": "'a b' . " * (MOST_OF_TOML // 8 - 4) + "a = 1",
    "texts that never end": 'a = "' + '\\"' * (MOST_OF_TOML // 2 - 4),
}
TEXTS = {**{name: text * (MOST // len(text)) for name, text in REPEATED.items()}, **WHOLE}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_no_text_takes_a_recogniser_longer_than_seconds(tmp_path: Path, text: str) -> None:
    for name in FILES:
        (tmp_path / name).write_text(text[: MOST_OF_TOML if name == "pyproject.toml" else MOST])
    begun = time.process_time()
    inspect(Tree.read(tmp_path))
    assert time.process_time() - begun < 20


def test_many_versions_on_one_line_are_read(tmp_path: Path) -> None:
    wanted = [f"package-{number}==1.2.{number}" for number in range(300)]
    (tmp_path / "pyproject.toml").write_text(f"[project]\nname = 'a'\ndependencies = {wanted}\n")
    assert len(pyproject_of(Tree.read(tmp_path), PurePosixPath()).table("project").texts("dependencies")) == len(wanted)


def test_very_many_statements_are_looked_through_in_seconds() -> None:
    # So many that looking at each once for each other takes minutes.
    syntax = parsed("a\n" * (MOST // 8))
    assert syntax is not None
    begun = time.process_time()
    assert not [*apps_in(syntax, FRAMEWORKS)]
    assert time.process_time() - begun < 10


def classes(*fields: str, delimiter: str = "__") -> str:
    """Classes with these fields, each of the next class; the last contains itself."""
    lines = [f"class A0(BaseSettings, env_nested_delimiter={delimiter!r}):", *(f"    {field}: A1" for field in fields)]
    for number in range(1, 5):
        lines += [f"class A{number}(BaseModel):", *(f"    {field}: A{min(number + 1, 4)}" for field in fields)]
    return "\n".join(lines)


SETTINGS = {
    "parts of parts": classes(*(f"field{number}" for number in range(1_000))),
    "parts of itself": "class S(BaseSettings, env_nested_delimiter='_'):\n    a: A\nclass A(BaseModel):\n"
    + "".join(f"    a{number}: A\n" for number in range(60)),
    "parts of one name": classes(*("x" for _ in range(1_000))),
    "names that are one": classes(*("_".join("x" * number) for number in range(1, 60)), delimiter="_"),
    "names that are long": classes(*(f"{name}" + "x" * 8_000 for name in "abcdefg"), delimiter="_" * 1_000),
    "parts that want little": classes(*"abcdefg") + "".join(f"\n    c{number}: ClassVar[int]" for number in range(20_000)),
}


@pytest.mark.parametrize("text", SETTINGS.values(), ids=SETTINGS)
def test_settings_are_read_in_seconds(tmp_path: Path, text: str) -> None:
    (tmp_path / "settings.py").write_text(text)
    begun = time.process_time()
    assert len(variables_for(Tree.read(tmp_path), PurePosixPath(), {}).required) <= 1_000
    assert time.process_time() - begun < 10
