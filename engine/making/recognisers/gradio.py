"""Recognises the apps of Gradio, by reading their modules; nothing is imported."""

import ast
import re
from collections.abc import Iterator

from engine.making.asgi_apps import App
from engine.making.python_apps import app_findings, modules_like
from engine.making.trees import Tree
from toolagent.contracts.making import Finding, FindingKind

__all__ = ["recognise_gradio"]

_LIKELY = re.compile(r"\bgradio\b")
_MAKES = frozenset({"Blocks", "ChatInterface", "Interface", "TabbedInterface"})
_LAUNCH = "launch"
_APP = "demo"


def recognise_gradio(tree: Tree) -> Iterator[Finding]:
    """Modules that launch an app, before those that only make one. See `app_findings` for the details."""
    modules = [one for one in modules_like(tree, _LIKELY) if _is_of_gradio(one[1])]
    launching = [one for one in modules if _LAUNCH in _called(one[1])]
    yield from app_findings(tree, FindingKind.GRADIO, launching or [one for one in modules if _MAKES & _called(one[1])], _app)


def _app(_syntax: ast.Module) -> Iterator[App]:
    yield App(_APP, "gradio")


def _is_of_gradio(syntax: ast.Module) -> bool:
    """Whether it imports Gradio, or calls something of it by that name."""
    for node in ast.walk(syntax):
        match node:
            case ast.Import(names=names) if any(name.name.partition(".")[0] == "gradio" for name in names):
                return True
            case ast.ImportFrom(module=str(module), level=0) if module.partition(".")[0] == "gradio":
                return True
            case _:
                pass
    return False


def _called(syntax: ast.Module) -> frozenset[str]:
    """The last part of the name of all that is called."""
    calls = (node.func for node in ast.walk(syntax) if isinstance(node, ast.Call))
    return frozenset(one.attr if isinstance(one, ast.Attribute) else one.id for one in calls if isinstance(one, (ast.Attribute, ast.Name)))
