"""Recognises WSGI applications of Python projects (Flask and others), by reading their modules; nothing is imported."""

import ast
import re
from collections.abc import Iterator, Mapping

from engine.making.python_sources.apps import app_findings, modules_like
from engine.making.python_sources.asgi_apps import App, apps_in, factories_in
from engine.making.repositories.trees import Tree
from toolagent.contracts.making import Finding, FindingKind

_FRAMEWORKS: Mapping[str, str] = {
    "flask.Flask": "flask",
    "flask.app.Flask": "flask",
    "apiflask.APIFlask": "apiflask",
    "flask_openapi3.OpenAPI": "flask",
    "bottle.Bottle": "bottle",
    "bottle.default_app": "bottle",
    "falcon.App": "falcon",
    "falcon.API": "falcon",
    "django.core.wsgi.get_wsgi_application": "django",
}
_LIKELY = re.compile(
    r"\b(?:APIFlask|Flask|OpenAPI|Bottle|default_app|falcon|get_wsgi_application)\b|^app(?:lication)?\s*=\s*\w+\(", re.MULTILINE
)


def recognise_wsgi(tree: Tree) -> Iterator[Finding]:
    """See `app_findings` for the details. What a function of another module of the repository makes is an app too."""
    modules = [*modules_like(tree, _LIKELY)]
    made = {name: framework for _, syntax in modules for name, framework in factories_in(syntax, _FRAMEWORKS).items()}

    def apps(syntax: ast.Module) -> Iterator[App]:
        return apps_in(syntax, _FRAMEWORKS, made)

    yield from app_findings(tree, FindingKind.WSGI, modules, apps, first="flask")
