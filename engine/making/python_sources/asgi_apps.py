"""Finds applications in the text of a module: what is assigned at its top, and functions that make one."""

import ast
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

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
"""What makes an ASGI application, by its full name."""

_DEEPEST = 3
"""Deeper nesting is not searched."""


@dataclass(frozen=True, slots=True)
class App:
    """`attribute` is the application, or with `is_factory` a function without required arguments that makes it."""

    attribute: str
    framework: str
    is_factory: bool = False


def apps_in(syntax: ast.Module, frameworks: Mapping[str, str], made_elsewhere: Mapping[str, str] | None = None) -> Iterator[App]:
    """In the order of the text. `frameworks` are what makes an application, by its full name.

    `made_elsewhere`: the names of functions of other modules that make one, which this module may import.
    """
    names = _imported(syntax)
    functions = {node.name: node for node in _top(syntax.body) if isinstance(node, ast.FunctionDef)}
    makers = factories_in(syntax, frameworks)
    factories = {name: framework for name, framework in makers.items() if _needs_nothing(functions[name])}
    imported = {name: found for name, full in names.items() if (found := (made_elsewhere or {}).get(full.rpartition(".")[2]))}
    for node in _top(syntax.body):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                if framework := _framework(value, names, frameworks) or _called(value, {**imported, **makers}):
                    yield App(name, framework)
            case _:
                pass
    yield from (App(name, framework, is_factory=True) for name, framework in factories.items())


def factories_in(syntax: ast.Module, frameworks: Mapping[str, str]) -> Mapping[str, str]:
    """The functions at its top that make an application, whatever they need; the framework by their name."""
    names = _imported(syntax)
    functions = [node for node in _top(syntax.body) if isinstance(node, ast.FunctionDef)]
    return {node.name: framework for node in functions if (framework := _made_by(node, names, frameworks))}


def _imported(syntax: ast.Module) -> dict[str, str]:
    """The full name of what is imported, by the name it has here. Of a relative import the last part counts."""
    found: dict[str, str] = {}
    for node in ast.walk(syntax):
        match node:
            case ast.Import(names=names):
                found.update({name.asname or name.name: name.name for name in names})
            case ast.ImportFrom(module=str(module), names=names, level=0):
                found.update({name.asname or name.name: f"{module}.{name.name}" for name in names})
            case ast.ImportFrom(names=names):
                found.update({name.asname or name.name: f".{name.name}" for name in names})
            case _:
                pass
    return found


def _top(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """What is executed when the module is imported, also where that is only in one case; without what is nested very deep."""
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


def _called(value: ast.expr, factories: Mapping[str, str]) -> str | None:
    match value:
        case ast.Call(func=ast.Name(id=name)):
            return factories.get(name)
        case _:
            return None


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
    """The framework of what it returns: made right there, or kept in a variable before."""
    kept: dict[str, str] = {}
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                if framework := _framework(value, names, frameworks):
                    kept[name] = framework
            case _:
                pass
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
    positional = len([*chain(arguments.posonlyargs, arguments.args)])
    return positional == len(arguments.defaults) and all(default is not None for default in arguments.kw_defaults)
