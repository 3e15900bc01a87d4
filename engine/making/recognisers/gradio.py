"""Recognises Gradio apps by reading their modules, without importing them."""

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
_GRADIO = "gradio"


def recognise_gradio(tree: Tree) -> Iterator[Finding]:
    """Modules that launch an app, else those that make one. See `app_findings` for the details.

    A module that launches another module's app may not name Gradio.
    """
    modules = [*modules_like(tree, _LIKELY)]
    own = [(path, syntax) for path, syntax in modules if _GRADIO in {name.partition(".")[0] for name in imported_names(syntax)}]
    makers = {path.stem if path.stem != "__init__" else path.parent.name for path, _ in own}
    launching = [one for one in modules if "launch" in _called(one[1]) and (one in own or makers & _imported(one[1]))]
    apps = launching or [one for one in own if _MAKES & _called(one[1])]
    yield from app_findings(tree, FindingKind.GRADIO, apps, lambda _: iter([App("demo", _GRADIO)]))


def _imported(syntax: ast.Module) -> set[str]:
    """The last parts of imported modules' names, also of relative imports."""
    relative = (node.module or "" for node in ast.walk(syntax) if isinstance(node, ast.ImportFrom) and node.level)
    return {name.rpartition(".")[2] for name in (*imported_names(syntax), *relative)} - {""}


def _called(syntax: ast.Module) -> frozenset[str]:
    """The last parts of the names of all calls."""
    calls = (node.func for node in ast.walk(syntax) if isinstance(node, ast.Call))
    return frozenset(one.attr if isinstance(one, ast.Attribute) else one.id for one in calls if isinstance(one, (ast.Attribute, ast.Name)))
