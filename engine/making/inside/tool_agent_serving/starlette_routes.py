"""Reads the routes of Starlette, and of frameworks on it."""

import inspect
import re

from .documents import Route

_PART = re.compile(r"\{(\w+)(?::\w+)?\}")
_SCHEMAS = {
    "IntegerConvertor": {"type": "integer", "minimum": 0},
    "FloatConvertor": {"type": "number", "minimum": 0},
    "UUIDConvertor": {"type": "string", "format": "uuid"},
    "PathConvertor": {"type": "string"},
}
_PLAIN = {"type": "string", "pattern": "^[^/]+$"}


def starlette_routes(routes, before=""):
    """The routes, also mounted ones, without folders of files."""
    for route in routes:
        path = getattr(route, "path", None)
        if not isinstance(path, str):
            continue
        inner = getattr(route, "routes", None)
        if inner:
            yield from starlette_routes(inner, before + path)
            continue
        view = getattr(route, "endpoint", None)
        methods = getattr(route, "methods", None)
        if view is None or not hasattr(route, "methods"):
            continue  # files, web sockets
        if inspect.isclass(view):
            methods = methods or [name for name in ("GET", "POST", "PUT", "PATCH", "DELETE") if hasattr(view, name.lower())]
        convertors = getattr(route, "param_convertors", {})
        names = _PART.findall(before + path)
        parameters = {name: _SCHEMAS.get(type(convertors.get(name)).__name__, _PLAIN) for name in names}
        plain = view if inspect.isclass(view) else inspect.unwrap(view)
        name = getattr(route, "name", None) or getattr(view, "__name__", "call")
        yield Route(_PART.sub(r"{\1}", before + path), methods or ("GET",), parameters, plain, name)
