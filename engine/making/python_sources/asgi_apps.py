"""Finds applications in the syntax of a module: assignments at its top, and functions that make one."""

import ast
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

FRAMEWORKS: Mapping[str, str] = {
    "fastapi.FastAPI": "fastapi",
    "fastapi.applications.FastAPI": "fastapi",
    "litestar.Litestar": "litestar",
    "starlette.applications.Starlette": "starlette",
    "quart.Quart": "quart",
    "blacksheep.Application": "blacksheep",
    "falcon.asgi.App": "falcon",
    "django.core.asgi.get_asgi_application": "django",
    "connexion.AsyncApp": "connexion",
}
"""The frameworks of ASGI applications, by the full name of their class or factory."""

_DEEPEST = 3
"""Deeper nesting is not searched."""


@dataclass(frozen=True, slots=True)
class App:
    """`attribute` is the application, or with `is_factory` a function that makes it, without required arguments."""

    attribute: str
    framework: str
    is_factory: bool = False


def apps_in(syntax: ast.Module, frameworks: Mapping[str, str], made_elsewhere: Mapping[str, str] | None = None) -> Iterator[App]:
    """The applications in the order of the text. `frameworks` are by the full name of their class or factory.

    `made_elsewhere`: functions of other modules that make an application, by name, which this module may import.
    """
    names = _imported(syntax)
    functions = {node.name: node for node in _top(syntax.body) if isinstance(node, ast.FunctionDef)}
    makers = factories_in(syntax, frameworks)
    factories = {name: framework for name, framework in makers.items() if _needs_nothing(functions[name])}
    imported = {name: found for name, full in names.items() if (found := (made_elsewhere or {}).get(full.rpartition(".")[2]))}
    for name, value in _assigned(_top(syntax.body)):
        called = value.func.id if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) else ""
        if framework := _framework(value, names, frameworks) or makers.get(called) or imported.get(called):
            yield App(name, framework)
    yield from (App(name, framework, is_factory=True) for name, framework in factories.items())


def factories_in(syntax: ast.Module, frameworks: Mapping[str, str]) -> Mapping[str, str]:
    """The frameworks of functions at the module's top that make an application, by function name."""
    names = _imported(syntax)
    functions = [node for node in _top(syntax.body) if isinstance(node, ast.FunctionDef)]
    return {node.name: framework for node in functions if (framework := _made_by(node, names, frameworks))}


def _imported(syntax: ast.Module) -> dict[str, str]:
    """The full names of imports, by their names in this module. A relative import only has the last part."""
    found: dict[str, str] = {}
    for node in ast.walk(syntax):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = "" if isinstance(node, ast.Import) else f"{'' if node.level else node.module}."
            found.update({name.asname or name.name: f"{module}{name.name}" for name in node.names})
    return found


def _assigned(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, ast.expr]]:
    """The names and values of simple assignments."""
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, value
            case _:
                pass


def _top(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run when the module is imported, also conditional ones, up to a depth."""
    waiting = deque((node, 0) for node in body)
    while waiting:
        node, depth = waiting.popleft()
        yield node
        if depth < _DEEPEST:
            match node:
                case ast.If(test=test, body=inner, orelse=other):
                    inside = [] if _is_main(test) else [*inner, *other]
                case ast.Try(body=inner, orelse=other):
                    inside = [*inner, *other]
                case ast.With(body=inner):
                    inside = inner
                case _:
                    inside = []
            waiting += [(one, depth + 1) for one in inside]


def _is_main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"


def _framework(value: ast.expr | None, names: Mapping[str, str], frameworks: Mapping[str, str]) -> str | None:
    if not isinstance(value, ast.Call):
        return None
    return frameworks.get(_full_name(value.func, names))


def _full_name(function: ast.expr, names: Mapping[str, str]) -> str:
    parts: list[str] = []
    while isinstance(function, ast.Attribute):
        parts.append(function.attr)
        function = function.value
    if not isinstance(function, ast.Name):
        return ""
    dotted = ".".join((function.id, *reversed(parts)))
    head, _, rest = dotted.partition(".")
    return dotted if head not in names else f"{names[head]}.{rest}" if rest else names[head]


def _made_by(function: ast.FunctionDef, names: Mapping[str, str], frameworks: Mapping[str, str]) -> str | None:
    """The framework of the returned application: made in the return statement, or assigned to a variable before."""
    assigned = _assigned(ast.walk(function))
    kept = {name: framework for name, value in assigned if (framework := _framework(value, names, frameworks))}
    for node in ast.walk(function):
        match node:
            case ast.Return(value=ast.Name(id=name)) if name in kept:
                return kept[name]
            case ast.Return(value=ast.Call() as value) if framework := _framework(value, names, frameworks):
                return framework
            case _:
                pass
    return None


def _needs_nothing(function: ast.FunctionDef) -> bool:
    arguments = function.args
    positional = len(arguments.posonlyargs) + len(arguments.args)
    return positional == len(arguments.defaults) and all(default is not None for default in arguments.kw_defaults)
