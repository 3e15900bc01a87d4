"""Each activity has a file, a stub and a line of a worker; without the line a workflow would wait for ever."""

import ast
from importlib import import_module
from inspect import getmembers, isclass, isfunction
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

from temporalio import activity

import activities
from toolagent_service import stubs

WORKERS = Path(__file__).parents[2] / "workers"


def names_in(of: object) -> dict[str, str]:
    """The Temporal names of the activities of a module or class, by their Python names."""
    found = {name: activity._Definition.from_callable(value) for name, value in getmembers(of, isfunction)}  # pyright: ignore[reportPrivateUsage] - nothing else says it
    return {name: str(definition.name) for name, definition in found.items() if definition}


def implemented() -> dict[str, tuple[ModuleType, str]]:
    modules = [import_module(f"activities.{module.name}") for module in iter_modules(activities.__path__)]
    classes = [(module, kind) for module in modules for _, kind in getmembers(module, isclass) if kind.__module__ == module.__name__]
    return {name: (module, method) for module, kind in classes for method, name in names_in(kind).items()}


def test_each_stub_has_an_activity_and_each_activity_a_stub() -> None:
    assert set(names_in(stubs).values()) == set(implemented())


def test_a_worker_names_each_activity() -> None:
    # Or its module, in `steps`, which a worker names.
    trees = {module.__name__: ast.parse(Path(str(module.__file__)).read_text()) for module, _ in implemented().values()}
    steps = {
        name: {
            node.attr
            for found in ast.walk(tree)
            if isinstance(found, ast.FunctionDef) and found.name == "steps"
            for node in ast.walk(found)
            if isinstance(node, ast.Attribute)
        }
        for name, tree in trees.items()
    }
    named = {
        node.attr for file in WORKERS.rglob("*.py") for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Attribute)
    }
    assert [name for name, (module, method) in implemented().items() if method not in named | steps[module.__name__]] == []
