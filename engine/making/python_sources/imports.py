"""Which packages of others a Python file imports: nothing is imported, its own imports and those of the modules beside it say it."""

import sys
from pathlib import PurePosixPath

from engine.making.python_sources.modules import imported_names, parsed
from engine.making.repositories.trees import Tree

_MOST_PARSED = 200


def imported_by(tree: Tree, file: PurePosixPath) -> frozenset[str]:
    """By the first part of their names: neither modules of Python's own nor ones that lie beside the file. Blocks."""
    found: set[str] = set()
    waiting, seen = [file], {file}
    while waiting and len(seen) <= _MOST_PARSED:
        syntax = parsed(tree.text(waiting.pop()) or "")
        for name in {name.partition(".")[0] for name in imported_names(syntax)} if syntax else ():
            folder = file.parent / name
            beside = [path for path in tree.files if path == folder.with_suffix(".py") or (path.suffix == ".py" and folder in path.parents)]
            waiting += [path for path in beside if path not in seen]
            seen.update(beside)
            if not beside and name not in sys.stdlib_module_names:
                found.add(name)
    return frozenset(found)
