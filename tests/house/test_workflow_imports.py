"""Workflows import from an allow-list only, so that no side effects reach their sandbox."""

import ast
from pathlib import Path

import pytest

ALLOWED = (
    "asyncio",
    "collections.Counter",
    "collections.abc",
    "datetime",
    "itertools",
    "typing",
    "temporalio",
    "toolagent.client",
    "toolagent.contracts",
    "toolagent.core",
    "toolagent_service",
    "workflows",
    # The contracts are pydantic: their values and the failure of making one are named by these two.
    "pydantic.JsonValue",
    "pydantic.ValidationError",
)
# Ways to import that are not import statements.
DYNAMIC = ("__import__", "import_module", "exec", "eval")


def _is_allowed(name: str) -> bool:
    return any(name == allowed or name.startswith(f"{allowed}.") for allowed in ALLOWED)


def _imported(node: ast.AST) -> list[str]:
    match node:
        case ast.Import(names=names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=str(module), names=names, level=0):
            return [module] if _is_allowed(module) else [f"{module}.{alias.name}" for alias in names]
        case ast.ImportFrom(level=level):
            return ["." * level]
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in DYNAMIC:
            return [f"{name}()"]
        case _:
            return []


def _refused(source: str) -> list[str]:
    """The imports of a module, at any place, that are not on the list."""
    return [name for node in ast.walk(ast.parse(source)) for name in _imported(node) if not _is_allowed(name)]


def test_workflows_import_only_what_is_on_the_list(root: Path, files: tuple[Path, ...]) -> None:
    modules = [path for path in files if path.parts[0] == "workflows" and path.suffix == ".py"]
    assert modules, "No workflow module is there: the guard looks at nothing."
    assert {str(path): refused for path in modules if (refused := _refused((root / path).read_text("utf-8")))} == {}


@pytest.mark.parametrize(
    ("source", "refused"),
    [
        ("import httpx", ["httpx"]),
        ("import datetime, os", ["os"]),
        ("from engine.store import tables", ["engine.store.tables"]),
        ("from toolagent import testing", ["toolagent.testing"]),
        ("from toolagent.testing import fakes", ["toolagent.testing.fakes"]),
        ("import toolagent", ["toolagent"]),
        ("import workflowsish", ["workflowsish"]),
        ("from collections import deque", ["collections.deque"]),
        ("from pydantic import JsonValue, BaseModel", ["pydantic.BaseModel"]),
        ("from . import options", ["."]),
        ("def run():\n    import random", ["random"]),
        ("with workflow.unsafe.imports_passed_through():\n    import sqlalchemy", ["sqlalchemy"]),
        ("if TYPE_CHECKING:\n    import activities.calls", ["activities.calls"]),
        ("__import__('httpx')", ["__import__()"]),
    ],
)
def test_an_import_that_is_not_on_the_list_is_caught(source: str, refused: list[str]) -> None:
    assert _refused(source) == refused


@pytest.mark.parametrize(
    "source",
    [
        "import asyncio",
        "from collections.abc import Mapping",
        "from collections import abc",
        "from temporalio import workflow",
        "from toolagent import core",
        "from toolagent.contracts.calls import ToolCall",
        "from workflows import options",
        "from pydantic import JsonValue, ValidationError",
    ],
)
def test_an_import_that_is_on_the_list_passes(source: str) -> None:
    assert _refused(source) == []
