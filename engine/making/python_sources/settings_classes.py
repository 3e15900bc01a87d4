"""Finds the variables without a default that pydantic's settings classes read, from their syntax."""

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from engine.making.python_sources.modules import parsed

_SETTINGS = "BaseSettings"
_MODELS = (_SETTINGS, "BaseModel")
_PLAIN = ("str", "int", "float", "bool")
"""Types without parts."""
_DEEPEST = 4
_MOST = 1_000
_LONGEST = 128
"""No variable of a tool has a longer name."""


@dataclass(frozen=True, slots=True)
class Needed:
    """A required variable. `wholes` are variables whose JSON may hold it; variables with its name and `between` hold parts of it."""

    name: str
    between: str
    wholes: tuple[str, ...] = ()

    def is_in(self, known: Collection[str]) -> bool:
        """Whether pydantic would find it; case does not matter. `known` are in upper case."""
        names, beginning = {one.upper() for one in (self.name, *self.wholes)}, f"{self.name}{self.between}".upper()
        return any(one in names or (self.between and one.startswith(beginning)) for one in known)


@dataclass(frozen=True, slots=True)
class _Field:
    """`kind` is the last name of its annotation, `alias` its own variable, if it has one."""

    kind: str
    alias: str


@dataclass(frozen=True, slots=True, eq=False)
class _Model:
    """`needed` are fields without a default, `beside` are the models of its module."""

    is_settings: bool
    prefix: str
    between: str
    needed: Mapping[str, _Field]
    beside: Mapping[str, "_Model"]


def required_variables(texts: Callable[[], Iterable[str]]) -> tuple[Needed, ...]:
    """The required variables in the modules' texts, up to a limit.

    The variables of a class that is a field of another class begin with the field's name.
    """
    if not any(_SETTINGS in text for text in texts()):
        return ()
    models = [pair for text in texts() if any(name in text for name in _MODELS) for pair in _models(text)]
    elsewhere, settings = dict(models), [model for _, model in models if model.is_settings]
    parts = {part for model in settings if model.between for _, _, part in _fields(model, elsewhere) if part is not None}
    found = (one for model in settings if model not in parts for one in _required(model, elsewhere))
    return tuple({one.name: one for one in islice(found, _MOST)}.values())


def _models(text: str) -> list[tuple[str, _Model]]:
    """The models of a module, with their names."""
    syntax = parsed(text)
    found: list[tuple[str, _Model]] = []
    beside: dict[str, _Model] = {}
    for node in ast.walk(syntax) if syntax is not None else ():
        bases = [_name(base) for base in node.bases] if isinstance(node, ast.ClassDef) else []
        if isinstance(node, ast.ClassDef) and any(base.endswith(_MODELS) for base in bases):
            is_settings = any(base.endswith(_SETTINGS) for base in bases)
            prefix, between = _configured(node, "env_prefix"), _configured(node, "env_nested_delimiter")
            model = _Model(is_settings, prefix, between, dict(_needed(node)), beside)
            beside[node.name] = model
            found.append((node.name, model))
    return found


def _fields(model: _Model, elsewhere: Mapping[str, _Model]) -> Iterator[tuple[str, _Field, _Model | None]]:
    """The required fields. A field whose type is a model has that too; models of the same module come first."""
    for name, one in model.needed.items():
        yield name, one, model.beside.get(one.kind) or elsewhere.get(one.kind)


def _required(model: _Model, elsewhere: Mapping[str, _Model]) -> Iterator[Needed]:
    for name, one, part in _fields(model, elsewhere):
        whole = Needed(one.alias or f"{model.prefix}{name}".upper(), _between(model.between, one))
        yield from _nested((part,), whole, elsewhere) if part is not None and model.between else (whole,)


def _nested(path: tuple[_Model, ...], whole: Needed, elsewhere: Mapping[str, _Model]) -> Iterator[Needed]:
    """The variables of a nested model: one for the whole if no field is required, it lies too deep, or it is recursive."""
    model = path[-1]
    if not model.needed or len(path) > _DEEPEST or model in path[:-1]:
        yield whole
        return
    for name, one, part in _fields(model, elsewhere):
        inner = Needed(f"{whole.name}{whole.between}{name}".upper(), _between(whole.between, one), (*whole.wholes, whole.name))
        yield from _nested((*path, part), inner, elsewhere) if part is not None else (inner,)


def _between(between: str, one: _Field) -> str:
    return "" if one.kind in _PLAIN else between


def _needed(node: ast.ClassDef) -> Iterator[tuple[str, _Field]]:
    """Fields without a default."""
    for one in node.body:
        match one:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=value) if not name.startswith(("_", "model_config")):
                if len(name) <= _LONGEST and _is_needed(value) and not _is_optional(annotation):
                    yield name, _Field(_name(annotation), _alias(value))
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
    texts = (one.value for one in found if isinstance(one, ast.Constant) and isinstance(one.value, str))
    return next((text for text in texts if len(text) <= _LONGEST), "")


def _is_optional(annotation: ast.expr) -> bool:
    """Walks the nodes without recursion, because annotations may be nested deeply."""
    names = (_name(one) or _text(one) for one in ast.walk(annotation))
    return any("ClassVar" in name or "SettingsConfigDict" in name for name in names)


def _configured(node: ast.ClassDef, option: str) -> str:
    return next((text for text in _values(node, option) if len(text) <= _LONGEST), "")


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


def _text(one: ast.AST) -> str:
    return one.value if isinstance(one, ast.Constant) and isinstance(one.value, str) else ""


def _name(base: ast.AST) -> str:
    match base:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""
