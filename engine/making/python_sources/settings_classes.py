"""The variables without a default that pydantic's settings classes read, by their syntax; nothing is imported."""

import ast
from collections.abc import Iterable, Iterator, Mapping

from engine.making.python_sources.modules import parsed

_SETTINGS = "BaseSettings"
_MODELS = (_SETTINGS, "BaseModel")
_DEEPEST = 4


def required_variables(texts: Iterable[str]) -> tuple[str, ...]:
    """Of modules' texts. A class that is only a part of another one is read from variables with the name of the field before its own."""
    classes = {node.name: node for text in texts if _SETTINGS in text for node in _models(text)}
    settings = [node for node in classes.values() if any(_name(base).endswith(_SETTINGS) for base in node.bases)]
    parts = {part.name for node in settings if _configured(node, "env_nested_delimiter") for part in _parts(node, classes)}
    found = (name for node in settings if node.name not in parts for name in _required(node, classes))
    return tuple(dict.fromkeys(found))


def _models(text: str) -> Iterator[ast.ClassDef]:
    syntax = parsed(text)
    for node in ast.walk(syntax) if syntax is not None else ():
        if isinstance(node, ast.ClassDef) and any(_name(base).endswith(_MODELS) for base in node.bases):
            yield node


def _parts(node: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> Iterator[ast.ClassDef]:
    found = (classes.get(_name(annotation)) for _, annotation, _ in _needed(node))
    yield from (one for one in found if one is not None)


def _required(node: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> Iterator[str]:
    prefix, between = _configured(node, "env_prefix"), _configured(node, "env_nested_delimiter")
    for name, annotation, value in _needed(node):
        whole = _alias(value) or f"{prefix}{name}".upper()
        part = classes.get(_name(annotation)) if between else None
        yield from _nested(part, whole, between, classes, _DEEPEST) if part is not None else (whole,)


def _nested(node: ast.ClassDef, name: str, between: str, classes: Mapping[str, ast.ClassDef], deeper: int) -> Iterator[str]:
    """The whole of it where none of its fields is needed, or where it lies too deep."""
    needed = [*_needed(node)] if deeper else []
    if not needed:
        yield name
    for field, annotation, _ in needed:
        inner, part = f"{name}{between}{field}".upper(), classes.get(_name(annotation))
        yield from _nested(part, inner, between, classes, deeper - 1) if part is not None else (inner,)


def _needed(node: ast.ClassDef) -> Iterator[tuple[str, ast.expr, ast.expr | None]]:
    """Fields that have no default."""
    for one in node.body:
        match one:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=value) if not name.startswith(("_", "model_config")):
                if _is_needed(value) and not _is_optional(annotation):
                    yield name, annotation, value
            case _:
                pass


def _is_needed(value: ast.expr | None) -> bool:
    match value:
        case None:
            return True
        case ast.Call(func=ast.Name(id="Field"), args=arguments, keywords=keywords):
            named = {one.arg for one in keywords}
            ellipsis = any(isinstance(one, ast.Constant) and one.value is Ellipsis for one in arguments)
            return ellipsis or not (arguments or named & {"default", "default_factory"})
        case _:
            return False


def _alias(value: ast.expr | None) -> str:
    if not isinstance(value, ast.Call):
        return ""
    found = (one.value for one in value.keywords if one.arg in ("alias", "validation_alias", "env"))
    return next((one.value for one in found if isinstance(one, ast.Constant) and isinstance(one.value, str)), "")


def _is_optional(annotation: ast.expr) -> bool:
    text = ast.unparse(annotation)
    return "ClassVar" in text or "SettingsConfigDict" in text


def _configured(node: ast.ClassDef, option: str) -> str:
    return next(_values(node, option), "")


def _values(node: ast.ClassDef, option: str) -> Iterator[str]:
    for inner in ast.walk(node):
        match inner:
            case ast.keyword(arg=str(name), value=ast.Constant(value=str(text))) if name == option:
                yield text
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(text))) if name == option:
                yield text
            case ast.Dict(keys=keys, values=values):
                named = zip(keys, values, strict=True)
                texts = (value.value for key, value in named if _is_named(key, option) and isinstance(value, ast.Constant))
                yield from (text for text in texts if isinstance(text, str))
            case _:
                pass


def _is_named(key: ast.expr | None, option: str) -> bool:
    return isinstance(key, ast.Constant) and key.value == option


def _name(base: ast.expr) -> str:
    match base:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""
