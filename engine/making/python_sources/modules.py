"""Finds the folders that the modules of a repository are imported from, by the modules' own imports."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from engine.making.python_sources.projects import folder_text
from engine.making.repositories.trees import Tree

_INIT = "__init__.py"


@dataclass(frozen=True, slots=True)
class Module:
    """`name` is the dotted name for an import from the folder `root` (empty: the top of the repository)."""

    root: str
    name: str


def parsed(text: str) -> ast.Module | None:
    """None if the text is no Python of this version, or is nested too deep. Blocks."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def module_at(tree: Tree, path: PurePosixPath, syntax: ast.Module) -> Module | None:
    """The module, from the folder in which most of its imports are found; None if its path is no module name."""
    folder = path.parent
    least = max((node.level for node in ast.walk(syntax) if isinstance(node, ast.ImportFrom)), default=0)
    while tree.has(folder / _INIT) and folder.parts:
        folder = folder.parent
    candidates = [root for root in (folder, *folder.parents) if len(path.parent.parts) - len(root.parts) >= least]
    if not candidates:
        candidates = [PurePosixPath()]
    wanted = {name.partition(".")[0] for name in imported_names(syntax)}
    # Among equals, the nearest folder; `src` is never a package.
    root = max(candidates, key=lambda root: (sum(_is_in(tree, root, name) for name in wanted), root.name == "src", len(root.parts)))
    parts = path.relative_to(root).with_suffix("").parts
    name = parts[:-1] if parts[-1] == "__init__" else parts
    return Module(folder_text(root), ".".join(name)) if name and all(part.isidentifier() for part in name) else None


def imported_names(syntax: ast.AST) -> Iterator[str]:
    """The dotted names of absolute imports."""
    for node in ast.walk(syntax):
        match node:
            case ast.Import(names=names):
                yield from (name.name for name in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module
            case _:
                pass


def _is_in(tree: Tree, root: PurePosixPath, name: str) -> bool:
    return tree.has(root / f"{name}.py") or tree.has_folder(root / name)
