"""Recognises WSGI applications of Python projects (Flask and others) by reading their modules, without importing them."""

import re
from collections.abc import Iterator, Mapping
from functools import partial

from engine.making.python_sources.apps import app_findings, modules_like
from engine.making.python_sources.asgi_apps import apps_in, factories_in
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
    """See `app_findings` for the details. A function of another module of the repository may make an app too."""
    modules = [*modules_like(tree, _LIKELY)]
    made = {name: framework for _, syntax in modules for name, framework in factories_in(syntax, _FRAMEWORKS).items()}
    apps = partial(apps_in, frameworks=_FRAMEWORKS, made_elsewhere=made)
    yield from app_findings(tree, FindingKind.WSGI, modules, apps, first="flask")
