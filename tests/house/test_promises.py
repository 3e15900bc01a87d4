"""Each promise has a test with its mark, and each mark names a promise."""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest
import yaml

MARKED = ("promise", "mark", "pytest")


def _promises(root: Path) -> dict[str, str]:
    return yaml.safe_load((root / "tests/promises.yaml").read_text("utf-8"))


def _attributes(node: ast.expr) -> Iterator[str]:
    """The dotted name `a.b.c` of an expression."""
    while isinstance(node, ast.Attribute):
        yield node.attr
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id


def _marks(source: str) -> Iterator[str]:
    """The promises that a test file marks: as decorators, on parameters or for the whole module."""
    for node in ast.walk(ast.parse(source)) if MARKED[0] in source else ():
        if isinstance(node, ast.Call) and tuple(_attributes(node.func)) == MARKED:
            for argument in node.args:
                yield argument.value if isinstance(argument, ast.Constant) and isinstance(argument.value, str) else ast.unparse(argument)


@cache
def _tests_of_promises(root: Path, files: tuple[Path, ...]) -> Mapping[str, set[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for path in files:
        if path.parts[0] == "tests" and path.name.startswith("test_"):
            for promise in _marks((root / path).read_text("utf-8")):
                found[promise].add(str(path))
    return found


def test_every_promise_has_a_test(root: Path, files: tuple[Path, ...]) -> None:
    shown = _tests_of_promises(root, files)
    assert {name: sentence for name, sentence in _promises(root).items() if name not in shown} == {}


def test_every_mark_names_a_promise(root: Path, files: tuple[Path, ...]) -> None:
    promises = _promises(root)
    assert {name: sorted(paths) for name, paths in _tests_of_promises(root, files).items() if name not in promises} == {}


def test_a_promise_is_a_sentence(root: Path) -> None:
    assert {name: sentence for name, sentence in _promises(root).items() if not sentence.endswith(".")} == {}


@pytest.mark.parametrize(
    "source",
    [
        '@pytest.mark.promise("kept")\ndef test(): ...',
        '@pytest.mark.timeout(3)\n@pytest.mark.promise("kept")\nasync def test(): ...',
        'import pytest\npytestmark = pytest.mark.promise("kept")',
        '@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.promise("kept"))])\ndef test(x): ...',
    ],
)
def test_a_mark_is_found_wherever_it_stands(source: str) -> None:
    assert [*_marks(source)] == ["kept"]


def test_a_mark_of_another_kind_is_none() -> None:
    assert [*_marks('@pytest.mark.timeout("promise")\ndef test(): ...')] == []
