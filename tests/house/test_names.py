"""Modules are named by nouns and have a docstring; those that others install have a correct `__all__`; an `__init__` is a docstring or a
registry.
"""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

OUR_ROOTS = ("engine", "workflows", "activities", "api", "workers", "tool_agent", "bench")
APART = tuple(
    map(
        Path,
        (
            "bench/deployed", "bench/made", "bench/tool", "bench/peers/dbos_server.py", "bench/peers/fastmcp_server.py",
            "engine/making/inside", "engine/making/programs/inside",
            *(f"packages/toolagent/src/toolagent/integrations/{name}.py" for name in ("langchain", "openai_agents", "pydantic_ai")),
        ),
    )
)  # fmt: skip
"""What runs in environments of its own: what it imports is not in ours."""
INSTALLED = Path("packages/toolagent/src")
PACKAGES = (INSTALLED, Path("packages/service/src"))
NOT_NOUNS = frozenset({"utils", "util", "helpers", "helper", "common", "shared", "manager", "base"})
CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]*")


def _is_ours(path: Path) -> bool:
    if path.suffix != ".py" or any(path.is_relative_to(apart) for apart in APART):
        return False
    return path.parts[0] in OUR_ROOTS or any(map(path.is_relative_to, PACKAGES))


def _module_name(path: Path) -> str:
    inner = next((path.relative_to(package) for package in PACKAGES if path.is_relative_to(package)), path)
    return ".".join(inner.with_suffix("").parts)


def _assigned(statement: ast.stmt) -> list[str]:
    match statement:
        case ast.Assign(targets=targets):
            return [ast.unparse(target) for target in targets]
        case ast.AnnAssign(target=target):
            return [ast.unparse(target)]
        case _:
            return []


def _stray(statement: ast.stmt) -> bool:
    """Whether a statement has no place in a registry."""
    match statement:
        case ast.Import() | ast.ImportFrom() | ast.FunctionDef() | ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return False
        case ast.Assign(value=ast.Subscript(value=ast.Name(id="Annotated"))):
            return False  # a union of types
        case ast.Assign() | ast.AnnAssign():
            return not all(name == "__all__" or CONSTANT.fullmatch(name) for name in _assigned(statement))
        case ast.Expr(value=ast.Constant(value=str())):
            return False  # what is said of a constant below it
        case _:
            return True


def _init_faults(source: str) -> Iterator[str]:
    """What an `__init__` holds besides a docstring and a registry: constants in capitals or a union, and their readers; or a function."""
    tree = ast.parse(source)
    if not ast.get_docstring(tree):
        yield "no docstring"
    code = tree.body[1:] if ast.get_docstring(tree) else tree.body
    yield from (f"line {statement.lineno} does not belong to a registry" for statement in code if _stray(statement))
    constants = [name for statement in code for name in _assigned(statement) if name != "__all__"]
    functions = [statement for statement in code if isinstance(statement, ast.FunctionDef)]
    if len(functions) > 1 and not constants:
        yield "functions, but no registry that they read"
    if code and not constants and not functions:
        yield "code, but no registry"


def _literal_all(tree: ast.Module) -> list[str] | None:
    """The names in `__all__`, or None when it is missing or not a literal list or tuple of strings."""
    for statement in tree.body:
        match statement:
            case (
                ast.Assign(targets=[ast.Name(id="__all__")], value=ast.List(elts=items) | ast.Tuple(elts=items))
                | ast.AnnAssign(target=ast.Name(id="__all__"), value=ast.List(elts=items) | ast.Tuple(elts=items))
            ):
                names = [item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)]
                return names if len(names) == len(items) else None
            case _:
                continue
    return None


def _module_faults(name: str, source: str, *, is_installed: bool = True) -> Iterator[str]:
    """Only an installed package declares its public names; elsewhere the underscore does."""
    tree = ast.parse(source)
    if not ast.get_docstring(tree):
        yield "no docstring"
    public = _literal_all(tree)
    if not is_installed:
        if public is not None:
            yield "an __all__ that nobody reads"
        return
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        yield f"cannot be imported: {error}"
        return
    if public is None:
        yield "no literal __all__"
        return
    yield from (f"__all__ names {each!r}, which is not there" for each in public if not hasattr(module, each))
    if len(set(public)) < len(public):
        yield "__all__ names something twice"


def test_every_init_is_a_docstring_or_a_registry(root: Path, files: tuple[Path, ...]) -> None:
    inits = [path for path in files if _is_ours(path) and path.name == "__init__.py"]
    assert inits, "No package is there: the guard looks at nothing."
    assert {str(path): faults for path in inits if (faults := [*_init_faults((root / path).read_text("utf-8"))])} == {}


def test_every_folder_of_modules_is_a_package(files: tuple[Path, ...]) -> None:
    # Import-linter does not see a folder without an `__init__`, so its contracts would hold for want of looking.
    folders = {path.parent for path in files if _is_ours(path) and "migrations" not in path.parts} - {*PACKAGES}
    assert sorted(str(folder) for folder in folders if folder / "__init__.py" not in files) == []


def test_no_module_has_a_name_that_says_nothing(files: tuple[Path, ...]) -> None:
    assert [str(path) for path in files if path.suffix == ".py" and NOT_NOUNS.intersection(path.with_suffix("").parts)] == []


def test_what_runs_apart_is_there(root: Path) -> None:
    # What has moved would be looked at by nobody.
    assert [str(path) for path in APART if not (root / path).exists()] == []


def test_every_module_has_a_docstring_and_what_is_installed_an_all_that_is_true(root: Path, files: tuple[Path, ...]) -> None:
    modules = [path for path in files if _is_ours(path) and path.stem not in {"__init__", "__main__"} and "migrations" not in path.parts]
    assert modules, "No module is there: the guard looks at nothing."
    sources = {path: (root / path).read_text("utf-8") for path in modules}
    found = {
        str(path): [*_module_faults(_module_name(path), text, is_installed=path.is_relative_to(INSTALLED))]
        for path, text in sources.items()
    }
    assert {path: faults for path, faults in found.items() if faults} == {}


@pytest.mark.parametrize(
    "source",
    [
        "",
        "X = 1",
        '"""D."""\nimport os',
        '"""D."""\nclass Registry: ...',
        '"""D."""\nregistry = {}',
        '"""D."""\nX = 1\nX.append(2)',
        '"""D."""\nif True:\n    X = 1',
        '"""D."""\ndef one(): ...\ndef two(): ...',
    ],
)
def test_an_init_that_is_neither_is_caught(source: str) -> None:
    assert [*_init_faults(source)]


@pytest.mark.parametrize(
    "source",
    [
        '"""D."""',
        '"""D."""\nfrom engine.runtimes import local\n__all__ = ["RUNTIMES"]\nRUNTIMES: tuple[str, ...] = (local.NAME,)',
        '"""D."""\n_TOOLS = ()\ndef tools(): return _TOOLS\ndef ids(): return [tool.id for tool in _TOOLS]',
        '"""D."""\nfrom api.routes import calls\ndef routers(): return (calls.router,)',
    ],
)
def test_an_init_that_is_a_docstring_or_a_registry_passes(source: str) -> None:
    assert [*_init_faults(source)] == []


@pytest.mark.parametrize(
    "source",
    [
        '__all__ = ["Decimal"]',
        '"""D."""',
        '"""D."""\n__all__ = [x for x in "ab"]',
        '"""D."""\n__all__ = ["nowhere"]',
        '"""D."""\n__all__ = ["Decimal", "Decimal"]',
    ],
)
def test_a_module_without_docstring_or_with_a_false_all_is_caught(source: str) -> None:
    assert [*_module_faults("decimal", source)]
