"""Reads the routes of Flask and Quart, with the schemas of their converters."""

import ast
import inspect
import re

from .documents import Route

_PART = re.compile(r"<(?:(?P<converter>[A-Za-z_]\w*)(?:\((?P<args>.*?)\))?:)?(?P<name>[A-Za-z_]\w*)>")
_STATIC = "static"


def werkzeug_routes(app):
    for rule in app.url_map.iter_rules():
        if _is_served(rule):
            view = app.view_functions.get(rule.endpoint)
            parameters = {found["name"]: _schema(found["converter"], found["args"] or "") for found in _PART.finditer(rule.rule)}
            path = _PART.sub(lambda found: "{" + found["name"] + "}", rule.rule)
            yield Route(path, rule.methods or (), parameters, _plain(view), rule.endpoint)


def _is_served(rule):
    is_static = rule.endpoint.rpartition(".")[2] == _STATIC
    return not (is_static or rule.build_only or getattr(rule, "websocket", False) or rule.subdomain or rule.host)


def _plain(view):
    """The class of a view, or the function below its decorators."""
    return getattr(view, "view_class", None) or inspect.unwrap(view) if view is not None else None


def _schema(converter, args):
    values, named = _arguments(args)
    if converter == "int":
        schema = {"type": "integer"}
        if not named.get("signed"):
            schema["minimum"] = 0
    elif converter == "float":
        # The converter accepts no number without a point.
        return {"type": "string", "pattern": r"^-?[0-9]+\.[0-9]+$" if named.get("signed") else r"^[0-9]+\.[0-9]+$"}
    elif converter == "uuid":
        return {"type": "string", "format": "uuid"}
    elif converter == "any" and values:
        return {"type": "string", "enum": [str(value) for value in values]}
    elif converter == "path":
        return {"type": "string", "pattern": "^[^/]+(/[^/]+)*$"}
    else:
        least, most = ("length", "length") if "length" in named else ("minlength", "maxlength")
        limits = {"minLength": named.get(least), "maxLength": named.get(most)}
        given = {name: limit for name, limit in limits.items() if limit is not None}
        return {"type": "string", "pattern": "^[^/]+$", **given}
    for name, limit in (("min", "minimum"), ("max", "maximum")):
        if name in named:
            schema[limit] = named[name]
    return schema


def _arguments(text):
    """The arguments of a converter in a rule, where words without quotes are strings."""
    try:
        call = ast.parse("f({})".format(text), mode="eval").body
    except SyntaxError:
        return [], {}
    return [_value(one) for one in call.args], {one.arg: _value(one.value) for one in call.keywords if one.arg}


def _value(node):
    if isinstance(node, ast.Name):
        return node.id
    try:
        return ast.literal_eval(node)
    except ValueError:
        return ""
