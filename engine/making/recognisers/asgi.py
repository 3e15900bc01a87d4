"""Recognises ASGI applications of Python projects, by reading their modules; nothing is imported."""

import ast
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from pydantic import JsonValue

from engine.making.asgi_apps import App, apps_in
from engine.making.projects import project_folder
from engine.making.python_modules import module_at, parsed
from engine.making.recognisers.recogniser import is_aside
from engine.making.trees import Tree
from toolagent.contracts.making import Finding, FindingKind

__all__ = ["recognise_asgi"]

_MOST_READ = 2_000
_MOST_PARSED = 200
_MOST = 5
_LIKELY = re.compile(r"\b(?:FastAPI|Starlette|Litestar|Quart|Application|AsyncApp|get_asgi_application|falcon)\b")
_ATTRIBUTES = ("app", "application", "api")
_FILES = ("main.py", "app.py", "asgi.py", "server.py", "api.py", "__init__.py")


def recognise_asgi(tree: Tree) -> Iterator[Finding]:
    """`details`: `module`, `attribute`, `is_factory`, `root`, `framework`; `project` is the folder that says what it depends on, if any."""
    sources = [path for path in tree.files if path.suffix == ".py"][:_MOST_READ]
    likely = (path for path in sources if _LIKELY.search(tree.text(path) or ""))
    found: list[Finding] = []
    for _, path in zip(range(_MOST_PARSED), likely, strict=False):
        syntax = parsed(tree.text(path) or "")
        if syntax is not None:
            found += _findings(tree, path, syntax)
    yield from sorted(found, key=_rank)[:_MOST]


def _findings(tree: Tree, path: PurePosixPath, syntax: ast.Module) -> Iterator[Finding]:
    module = module_at(tree, path, syntax)
    if module is None:
        return
    project = project_folder(tree, path)
    for app in apps_in(syntax):
        details: dict[str, JsonValue] = {
            "module": module.name,
            "attribute": app.attribute,
            "is_factory": app.is_factory,
            "root": module.root,
            "framework": app.framework,
        }
        if project is not None:
            details["project"] = "" if not project.parts else project.as_posix()
        yield Finding(kind=FindingKind.ASGI, path=path.as_posix(), summary=_summary(app, module.name), details=details)


def _summary(app: App, module: str) -> str:
    return f"{'A function that makes a' if app.is_factory else 'A'} {app.framework} application, {module}:{app.attribute}."


def _rank(finding: Finding) -> tuple[object, ...]:
    details, path = finding.details, PurePosixPath(finding.path)
    return (
        "project" not in details,
        is_aside(finding.path) or path.name.startswith("test_"),
        details["framework"] != "fastapi",
        details["is_factory"],
        _position(str(details["attribute"]), _ATTRIBUTES),
        _position(path.name, _FILES),
        len(path.parts),
        finding.path,
    )


def _position(name: str, order: tuple[str, ...]) -> int:
    return order.index(name) if name in order else len(order)
