"""Modules that a program misses, and nobody declared."""

from pathlib import Path

import pytest

from engine.making.python_projects.undeclared import undeclared_module
from engine.making.repositories.trees import Tree


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ("ModuleNotFoundError: No module named 'yaml'", "yaml"),
        ("No module named 'first'\n\nDuring handling, another exception occurred: No module named 'yaml'", "yaml"),
        ("ModuleNotFoundError: No module named 'yaml.parts'", ""),
        ("ModuleNotFoundError: No module named 'distutils'", ""),
        ("ModuleNotFoundError: No module named 'settings'", ""),
        ("ModuleNotFoundError: No module named 'db'", ""),
        ("KeyError: 'PORT'", ""),
    ],
)
def test_a_module_that_is_neither_of_the_repository_nor_of_python_is_one(tmp_path: Path, told: str, name: str) -> None:
    (tmp_path / "app/db").mkdir(parents=True)
    (tmp_path / "app/settings.py").touch()
    (tmp_path / "app/db/__init__.py").touch()
    (tmp_path / "yaml.md").touch()
    assert undeclared_module(told, Tree.read(tmp_path)) == name
