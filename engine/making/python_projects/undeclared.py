"""Recognises a module that a program imports, and that nothing it declares provides."""

import re
import sys

from engine.making.repositories.trees import Tree

_NO_MODULE = re.compile(r"No module named '([A-Za-z_]\w*)'")


def undeclared_module(told: str, tree: Tree) -> str:
    """The last module that the output misses; empty if there is none, or the repository or Python's library has one of that name."""
    found = _NO_MODULE.findall(told)
    if not found or found[-1] in sys.stdlib_module_names:
        return ""
    is_own = any(path.suffix == ".py" and found[-1] in path.with_suffix("").parts for path in tree.files)
    return "" if is_own else found[-1]
