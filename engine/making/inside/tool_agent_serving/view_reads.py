"""Finds what a view reads from its request, in its source: `request.args.get("x", type=int)`, `request.get_json()["y"]`."""

import ast
import inspect
import textwrap

_PLACES = {
    "args": "query",
    "query_params": "query",
    "values": "query",
    "form": "form",
    "files": "file",
    "json": "json",
    "get_json": "json",
}
_TYPES = {"int": "integer", "float": "number", "bool": "boolean", "str": "string"}
_READERS = ("get", "getlist", "pop")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class Read:
    """A value that a view reads. `required`: on every path through the view."""

    def __init__(self, place, name):
        self.place, self.name, self.required, self.is_list = place, name, False, False
        self.type, self.default = None, None

    @property
    def schema(self):
        if self.place == "file":
            return {"type": "string", "format": "binary"}
        kind = self.type or (None if self.place == "json" else "string")
        schema = {"type": kind} if kind else {}
        if self.is_list:
            return {"type": "array", "items": schema}
        return dict(schema, default=self.default) if self.default is not None else schema


def reads_of(view, method):
    """The reads by place and name. Empty if the source is not available."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(view)))
    except (OSError, TypeError, SyntaxError, ValueError, IndentationError):
        return {}
    function = next((node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS)), None)
    if function is None or isinstance(function, ast.Lambda):
        return {}
    reader = _Reader(method)
    reader.walk(function.body, True)
    return reader.found


class _Reader:
    """Walks the syntax of a view. `certain` code runs in every request of the method."""

    def __init__(self, method):
        self.found, self._method, self._aliases = {}, method, {}

    def walk(self, node, certain):
        if isinstance(node, list):
            for one in node:
                self.walk(one, certain)
                if self._ends(one):
                    break
        elif isinstance(node, ast.If):
            self._branches(node, certain)
        elif isinstance(node, ast.IfExp):
            self.walk(node.test, certain)
            self.walk([node.body, node.orelse], False)
        elif isinstance(node, ast.Try):
            self.walk(node.body, certain)
            self.walk([*node.handlers, *node.orelse, *node.finalbody], False)
        elif isinstance(node, ast.BoolOp):
            self.walk(node.values[0], certain)
            self.walk(node.values[1:], False)
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            self.walk([node.iter] if not isinstance(node, ast.While) else [node.test], certain)
            self.walk([*node.body, *node.orelse], False)
        elif isinstance(node, _FUNCTIONS):
            self.walk(node.body, False)
        else:
            self._one(node, certain)
            self.walk(list(ast.iter_child_nodes(node)), certain)

    def _branches(self, node, certain):
        """`if request.method == "POST":` is certain for that method, and skipped for others."""
        asked = _method_asked(node.test)
        if asked is None:
            self.walk(node.test, certain)
            self.walk([*node.body, *node.orelse], False)
        else:
            self.walk(node.body if self._method in asked else node.orelse, certain)

    def _ends(self, node):
        """Whether the code after the node is only for other methods."""
        asked = _method_asked(node.test) if isinstance(node, ast.If) else None
        taken = [] if asked is None else node.body if self._method in asked else node.orelse
        return bool(taken) and isinstance(taken[-1], (ast.Return, ast.Raise))

    def _one(self, node, certain):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            place = self._place(node.value)
            if place and isinstance(targets[0], ast.Name):
                self._aliases[targets[0].id] = place
        elif isinstance(node, ast.Call):
            self._call(node)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            read = self._reading(node)
            if read is not None:
                read.required |= certain
        elif isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            name = _text(node.left)
            if name is not None and self._place(node.comparators[0]):
                self._read(self._place(node.comparators[0]), name)

    def _call(self, node):
        if isinstance(node.func, ast.Name) and node.func.id in _TYPES and len(node.args) == 1:
            read = self._reading(node.args[0])
            if read is not None:
                read.type = read.type or _TYPES[node.func.id]
            return
        read = self._reading(node)
        if read is None:
            return
        given = {one.arg: one.value for one in node.keywords}
        kind = given.get("type")
        if isinstance(kind, ast.Name):
            read.type = _TYPES.get(kind.id, read.type)
        default = node.args[1] if len(node.args) > 1 else given.get("default")
        if isinstance(default, ast.Constant) and isinstance(default.value, (str, int, float, bool)):
            self._take_default(read, default.value)

    def _take_default(self, read, value):
        kind = {bool: "boolean", str: "string", int: "integer", float: "number"}[type(value)]
        if read.type is None and not (read.place == "json" and kind == "integer"):
            read.type = kind
        if read.type == kind or (read.type == "number" and kind == "integer"):
            read.default = value

    def _reading(self, node):
        """The read of a `get` or `[]` on a part of the request."""
        reader = ""
        if isinstance(node, ast.Subscript):
            name, place = _text(node.slice), self._place(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _READERS and node.args:
            name, place, reader = _text(node.args[0]), self._place(node.func.value), node.func.attr
        else:
            return None
        if name is None or not place:
            return None
        read = self._read(place, name)
        read.is_list |= reader == "getlist"
        return read

    def _read(self, place, name):
        return self.found.setdefault((place, name), Read(place, name))

    def _place(self, node):
        """The place of an expression that is the query, a form or the JSON of the request."""
        while isinstance(node, (ast.Await, ast.BoolOp, ast.Call)):
            node = node.value if isinstance(node, ast.Await) else node.values[0] if isinstance(node, ast.BoolOp) else node.func
        if isinstance(node, ast.Name):
            return self._aliases.get(node.id)
        if isinstance(node, ast.Attribute) and _is_request(node.value):
            return _PLACES.get(node.attr)
        return None


def _is_request(node):
    return (isinstance(node, ast.Name) and node.id == "request") or (isinstance(node, ast.Attribute) and node.attr == "request")


def _method_asked(test):
    """The methods for which the test holds; None if it tests something else."""
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.left, ast.Attribute)):
        return None
    if test.left.attr != "method" or not _is_request(test.left.value):
        return None
    right = test.comparators[0]
    names = [_text(one) for one in (right.elts if isinstance(right, (ast.List, ast.Tuple, ast.Set)) else [right])]
    return names if isinstance(test.ops[0], (ast.Eq, ast.In)) and all(names) else None


def _text(node):
    """The string of a constant, also inside an index of older Pythons."""
    node = node.value if type(node).__name__ == "Index" else node
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
