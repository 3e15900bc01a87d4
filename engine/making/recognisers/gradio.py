"""Recognises the apps of Gradio, by reading their modules; nothing is imported."""

import ast
import re
from collections.abc import Iterator

from engine.making.python_sources.apps import app_findings, modules_like
from engine.making.python_sources.asgi_apps import App
from engine.making.python_sources.modules import imported_names
from engine.making.repositories.trees import Tree
from toolagent.contracts.making import Finding, FindingKind

_LIKELY = re.compile(r"\bgradio\b|\.launch\(")
_MAKES = frozenset({"Blocks", "ChatInterface", "Interface", "TabbedInterface"})
_LAUNCH = "launch"
_APP, _GRADIO = "demo", "gradio"


def recognise_gradio(tree: Tree) -> Iterator[Finding]:
    """Modules that launch an app, before those that only make one. See `app_findings` for the details.

    What launches one that another module of the repository makes may name Gradio nowhere.
    """
    modules = [*modules_like(tree, _LIKELY)]
    own = [(path, syntax) for path, syntax in modules if _GRADIO in {name.partition(".")[0] for name in imported_names(syntax)}]
    makers = {path.stem if path.stem != "__init__" else path.parent.name for path, _ in own}
    launching = [one for one in modules if _LAUNCH in _called(one[1]) and (one in own or makers & _imported(one[1]))]
    yield from app_findings(tree, FindingKind.GRADIO, launching or [one for one in own if _MAKES & _called(one[1])], _app)


def _app(_syntax: ast.Module) -> Iterator[App]:
    yield App(_APP, _GRADIO)


def _imported(syntax: ast.Module) -> set[str]:
    """The last parts of the names of modules, also of those that a relative import names."""
    relative = (node.module or "" for node in ast.walk(syntax) if isinstance(node, ast.ImportFrom) and node.level)
    return {name.rpartition(".")[2] for name in (*imported_names(syntax), *relative)} - {""}


def _called(syntax: ast.Module) -> frozenset[str]:
    """The last part of the name of all that is called."""
    calls = (node.func for node in ast.walk(syntax) if isinstance(node, ast.Call))
    return frozenset(one.attr if isinstance(one, ast.Attribute) else one.id for one in calls if isinstance(one, (ast.Attribute, ast.Name)))
