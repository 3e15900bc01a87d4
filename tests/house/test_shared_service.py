"""Files with tests of the shared service are listed for one process; otherwise they would start another service."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.scheduling import WITH_THE_SHARED_SERVICE


def test_every_file_whose_tests_share_the_service_is_listed_and_no_other(root: Path, files: tuple[Path, ...]) -> None:
    tests = [path for path in files if path.match("tests/system/test_*.py")]
    assert {str(path) for path in tests if _shares("service", (root / path).read_text("utf-8"))} == WITH_THE_SHARED_SERVICE


def _shares(fixture: str, text: str) -> bool:
    functions = list(_functions(ast.parse(text)))
    if any(one.name == fixture for one in functions):
        return False
    return any(
        fixture in [argument.arg for argument in one.args.args] for one in functions if one.name.startswith("test_") or _is_fixture(one)
    )


def _is_fixture(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("fixture" in ast.unparse(decorator) for decorator in function.decorator_list)


def _functions(syntax: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in syntax.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
