"""Writes the OpenAPI document of an app from its routes, and from what its views read."""

import inspect
from collections import namedtuple

from .facade import HEALTHY, whole
from .view_reads import reads_of

Route = namedtuple("Route", "path methods parameters view name")
"""`path` has `{name}` for each of the `parameters` (schemas by name); `view` is a function, or a class with a function for each method."""

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_WITH_BODY = ("POST", "PUT", "PATCH")
_FORM, _PARTS, _JSON = "application/x-www-form-urlencoded", "multipart/form-data", "application/json"


def document(title, routes):
    paths = dict(HEALTHY)
    for route in routes:
        methods = [method for method in _METHODS if method in route.methods]
        for method in methods:
            name = route.name if len(methods) == 1 else "{}_{}".format(route.name, method.lower())
            paths.setdefault(route.path, {}).setdefault(method.lower(), _operation(route, method, name))
    return whole(title, paths)


def _operation(route, method, name):
    view = getattr(route.view, method.lower(), None) if inspect.isclass(route.view) else route.view
    view = view or getattr(route.view, "dispatch_request", None)
    reads = reads_of(view, method)
    summary, _, description = _said(view).partition("\n")
    parameters = [{"name": name, "in": "path", "required": True, "schema": schema} for name, schema in route.parameters.items()]
    parameters += [
        {"name": one.name, "in": "query", "required": one.required, "schema": one.schema}
        for one in reads.values()
        if one.place == "query" and one.name not in route.parameters
    ]
    operation = {
        "operationId": name,
        "summary": summary.strip(),
        "description": description.strip(),
        "parameters": parameters,
        "responses": {"200": {"description": "What the app answers: JSON, or the text of a page."}},
    }
    if method in _WITH_BODY:
        operation["requestBody"] = _body([one for one in reads.values() if one.place != "query"])
    return operation


def _body(reads):
    """JSON before forms; an unknown body is an object."""
    places = {one.place for one in reads}
    kind = _PARTS if "file" in places else _FORM if places == {"form"} else _JSON
    fields = [one for one in reads if (one.place == "json") == (kind == _JSON)]
    schema = {"type": "object"}
    if fields:
        schema["properties"] = {one.name: one.schema for one in fields}
        schema["required"] = [one.name for one in fields if one.required]
    return {"required": bool(fields), "content": {kind: {"schema": schema}}}


def _said(view):
    """The view's docstring, without flasgger's YAML."""
    text = inspect.getdoc(view) if view is not None else None
    return (text or "").partition("\n---")[0].strip()
