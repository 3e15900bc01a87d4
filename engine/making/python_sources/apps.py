"""Finds the apps of Python projects by reading their modules, without importing them."""

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import PurePosixPath
from typing import TypeAlias

from pydantic import JsonValue

from engine.making.python_sources.asgi_apps import App
from engine.making.python_sources.modules import module_at, parsed
from engine.making.python_sources.projects import folder_text, project_folder
from engine.making.repositories.asides import is_aside
from engine.making.repositories.trees import Tree
from toolagent.contracts.making import Finding, FindingKind

_MOST_READ = 2_000
_MOST_PARSED = 200
_MOST = 5
_TESTS = frozenset({"test", "tests", "testing"})
"""Folders whose apps test the repository."""
_ATTRIBUTES = ("app", "application", "api", "demo")
_FILES = ("main.py", "app.py", "asgi.py", "wsgi.py", "server.py", "run.py", "api.py", "__init__.py")

Read: TypeAlias = tuple[PurePosixPath, ast.Module]
"""A module of the repository: its path and syntax."""


def modules_like(tree: Tree, words: re.Pattern[str]) -> Iterator[Read]:
    """Modules with one of the words in their text, the nearest first, up to a limit. Blocks."""
    sources = [path for path in tree.files if path.suffix == ".py" and not _TESTS & set(path.parts[:-1])][:_MOST_READ]
    likely = (path for path in sources if words.search(tree.text(path) or ""))
    for path in islice(likely, _MOST_PARSED):
        if syntax := parsed(tree.text(path) or ""):
            yield path, syntax


def app_findings(
    tree: Tree, kind: FindingKind, modules: Iterator[Read] | list[Read], apps_in: Callable[[ast.Module], Iterator[App]], first: str = ""
) -> Iterator[Finding]:
    """The best findings, first those of the framework `first` among equals.

    `details`: `module`, `attribute`, `is_factory`, `root`, `framework`; `project` is the folder that declares dependencies, if any.
    """
    found = [one for path, syntax in modules for one in _findings(tree, kind, path, syntax, apps_in)]
    yield from sorted(found, key=lambda finding: _rank(finding, first))[:_MOST]


def _findings(
    tree: Tree, kind: FindingKind, path: PurePosixPath, syntax: ast.Module, apps_in: Callable[[ast.Module], Iterator[App]]
) -> Iterator[Finding]:
    apps = [*apps_in(syntax)]
    module = module_at(tree, path, syntax) if apps else None
    if module is None:
        return
    project = project_folder(tree, path)
    for app in apps:
        details: dict[str, JsonValue] = {
            "module": module.name,
            "attribute": app.attribute,
            "is_factory": app.is_factory,
            "root": module.root,
            "framework": app.framework,
        }
        if project is not None:
            details["project"] = folder_text(project)
        what = f"{'A function that makes a' if app.is_factory else 'A'} {app.framework} application"
        yield Finding(kind=kind, path=path.as_posix(), summary=f"{what}, {module.name}:{app.attribute}.", details=details)


def _rank(finding: Finding, first: str) -> tuple[object, ...]:
    details, path = finding.details, PurePosixPath(finding.path)
    return (
        "project" not in details,
        is_aside(finding.path) or path.name.startswith("test_"),
        details["framework"] != first,
        details["is_factory"],
        position(str(details["attribute"]), _ATTRIBUTES),
        position(path.name, _FILES),
        len(path.parts),
        finding.path,
    )


def position(name: str, order: Sequence[str]) -> int:
    """The index of the name; of an unknown name, the end."""
    return order.index(name) if name in order else len(order)
