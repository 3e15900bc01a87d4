"""Which of our files a call walks through, from `POST /run_tool` to its answer."""

import ast
import os
import signal
import stat
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from bench.processes import until
from bench.service import ACTING, OurService, Tree, make_catalog

_TRACED = Path(__file__).with_name("traced.py")
_MESSAGE = "hello"
_CALLS = 10
_LOOKS, _LOOK_S = 10, 2.0
_ALWAYS = 0.75
"""What works in so many looks at an idle service works all the time; what works every few seconds does in four of ten at most."""
_AFTER_S = 1.0
"""An answer may come before its workflow has ended."""
_WAIT_S = 20.0
_VALUES = {"property", "cached_property", "field_validator", "model_validator"}


class Function(NamedTuple):
    path: str
    line: int
    name: str


def walked(tree: Tree, folder: Path) -> Mapping[str, tuple[str, ...]]:
    """By the kind of the call, the files that work in each of its calls: neither all the time anyway, nor for the first call only."""
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nexec "{tree.python}" "{_TRACED}" "{folder}" "$@"\n')
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    service = OurService(folder / "service", make_catalog(folder / "data", root=tree.root), tree=Tree(tree.root, str(python)))
    try:
        calls: Mapping[str, Callable[[], object]] = {
            "a fast call": lambda: service.call("echo", message=_MESSAGE),
            "a queued local call": lambda: service.call(ACTING, message=_MESSAGE),
        }
        for call in calls.values():
            call()
        looks = Counter(
            path for _ in range(_LOOKS) for path in _files(_seen(service, folder, tree, lambda: time.sleep(_LOOK_S)), tree.root)
        )
        always = {path for path, count in looks.items() if count >= _ALWAYS * _LOOKS}
        return {name: tuple(sorted(_of_each(service, folder, tree, call) - always)) for name, call in calls.items()}
    finally:
        service.stop()


def _of_each(service: OurService, folder: Path, tree: Tree, call: Callable[[], object]) -> set[str]:
    """Of each call by itself: what goes on by itself every few seconds is in some of them only."""
    found: list[set[str]] = []
    for _ in range(_CALLS):
        call()  # what is read once a second is read by this one
        found.append(_files(_seen(service, folder, tree, lambda: (call(), time.sleep(_AFTER_S))), tree.root))
    return {path for path in found[0] if all(path in files for files in found)}


def _seen(service: OurService, folder: Path, tree: Tree, work: Callable[[], object]) -> Collection[Function]:
    _noted(service, folder)
    work()
    root = f"{tree.root.resolve()}/"
    lines = (line.split(" ", 2) for line in _noted(service, folder))
    return [
        Function(path.removeprefix(root), int(line), name) for name, line, path in lines if path.startswith(root) and "/.venv/" not in path
    ]


def _noted(service: OurService, folder: Path) -> list[str]:
    """Since it was asked before."""
    listed = folder / "functions"
    listed.unlink(missing_ok=True)
    os.kill(service.child.pid, signal.SIGUSR2)
    if not until(listed.exists, _WAIT_S):
        raise RuntimeError("The service did not say which functions worked.")
    return listed.read_text().splitlines()


def _files(functions: Collection[Function], root: Path) -> set[str]:
    """Not those of which only values are made or read, as types are."""
    return {of.path for of in functions if not of.name.startswith(("<", "__")) and of.line not in _of_values(root / of.path)}


@cache
def _of_values(path: Path) -> frozenset[int]:
    """Where properties and validators of types begin."""
    return frozenset(_value_lines(ast.parse(path.read_text("utf-8"))))


def _value_lines(module: ast.Module) -> Iterator[int]:
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef) and _VALUES & {
            name.id for by in node.decorator_list for name in ast.walk(by) if isinstance(name, ast.Name)
        }:
            yield node.decorator_list[0].lineno
