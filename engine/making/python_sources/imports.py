"""Finds the packages and folders that a Python file imports from, by its syntax and that of the modules beside it."""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from engine.making.python_sources.modules import imported_names, parsed
from engine.making.repositories.trees import Tree

_MOST_PARSED = 200
_MOST_NAMES = 200
_ELSEWHERE = frozenset({"win32", "cygwin", "darwin", "nt", "Windows", "Darwin"})
_LACKS = frozenset({"ImportError", "ModuleNotFoundError"})
_ANY = frozenset({"Exception", "BaseException"})
"""These are about imports only if nothing else is tried."""
_ENDS = frozenset({"exit", "quit", "_exit"})


def imported_by(tree: Tree, file: PurePosixPath, *, from_top: bool = False) -> frozenset[str]:
    """The first parts of module names, without Python's library and modules beside the file. Blocks.

    Leaves out optional imports, and those for type checkers and other systems. `from_top`: modules at the top are found, too.
    """
    top = PurePosixPath()
    above = {name: files for name, files in _by_name(tree, top).items() if _is_package(tree, top, name)} if from_top else {}
    ours = {**above, **_by_name(tree, file.parent)}
    found: set[str] = set()
    waiting, seen = [file], {file}
    while waiting and len(seen) <= _MOST_PARSED and len(found) < _MOST_NAMES:
        syntax = parsed(tree.text(waiting.pop()) or "")
        for name in _first_parts(syntax) if syntax else ():
            beside = ours.get(name, ())
            waiting += [path for path in beside if path not in seen]
            seen.update(beside)
            if not beside and name not in sys.stdlib_module_names:
                found.add(name)
    return frozenset(sorted(found)[:_MOST_NAMES])


def folder_above(tree: Tree, folder: PurePosixPath, files: Sequence[str]) -> PurePosixPath:
    """The nearest folder above with all modules that these files of `folder`, and modules beside them, need from above.

    `folder` itself if there are none. Blocks.
    """
    missing = {name for file in files for name in imported_by(tree, folder / file)}
    found = [next((one for one in folder.parents if _is_package(tree, one, name)), folder) for name in missing]
    return min((folder, *found), key=lambda one: len(one.parts))


def _first_parts(syntax: ast.Module) -> frozenset[str]:
    return frozenset(name.partition(".")[0] for name in _needed(syntax))


def _is_package(tree: Tree, root: PurePosixPath, name: str) -> bool:
    """Not for any folder: its name may be that of another package."""
    return tree.has(root / f"{name}.py") or tree.has(root / name / "__init__.py")


def _by_name(tree: Tree, folder: PurePosixPath) -> Mapping[str, Sequence[PurePosixPath]]:
    """The Python files in and below the folder, by the first part of their module names."""
    found: defaultdict[str, list[PurePosixPath]] = defaultdict(list)
    for path in tree.files:
        if path.suffix == ".py" and path.is_relative_to(folder):
            found[path.relative_to(folder).with_suffix("").parts[0]].append(path)
    return found


def _needed(syntax: ast.Module) -> Iterator[str]:
    waiting: list[ast.AST] = [syntax]
    while waiting:
        match waiting.pop():
            case ast.Try(handlers=handlers) as node if any(_does_without(handler, node.body) for handler in handlers):
                waiting += [*handlers, *node.orelse, *node.finalbody]
            case ast.If(test=test) as node if _is_elsewhere(test):
                waiting += node.orelse
            case ast.Import() | ast.ImportFrom() as node:
                yield from imported_names(node)
            case node:
                waiting += ast.iter_child_nodes(node)


def _does_without(handler: ast.ExceptHandler, tried: Sequence[ast.stmt]) -> bool:
    """Whether the handler makes the import optional: it neither ends the program nor raises."""
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {one.id for one in caught if isinstance(one, ast.Name)}
    is_any = (None in caught or names & _ANY) and all(isinstance(one, ast.Import | ast.ImportFrom | ast.Assign) for one in tried)
    if not (names & _LACKS or is_any):
        return False
    return not any(_is_an_end(node) for statement in handler.body for node in ast.walk(statement))


def _is_an_end(node: ast.AST) -> bool:
    match node:
        case ast.Raise():
            return True
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in _ENDS
        case _:
            return False


def _is_elsewhere(test: ast.expr) -> bool:
    match test:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name == "TYPE_CHECKING"
        case ast.Compare(
            left=ast.Attribute(attr="platform" | "name") | ast.Call(func=ast.Attribute(attr="system")),
            ops=[ast.Eq()],
            comparators=[ast.Constant(value=str(system))],
        ):
            return system in _ELSEWHERE
        case _:
            return False
