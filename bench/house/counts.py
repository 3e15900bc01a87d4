"""What can be counted without running anything: tokens, lines, files of a folder, the longest chain of imports."""

import io
import json
import re
import sys
import tokenize
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import grimp

_PRODUCT = ("activities", "api", "engine", "packages", "tool_agent", "workers", "workflows")
_PACKAGES = ("toolagent", "toolagent_service", "engine", "workflows", "activities", "api", "workers", "tool_agent")
_SPECIAL = re.compile(r"\b(fast|is_fast|only_if_running|not_running|NotRunning|NotRunningHere|call_running|is_running_here)\b")
_NAMED_FOR_IT = "engine/calling/fast_call.py"
"""The operation itself is no special case."""
_AT_A_GLANCE = 16
_SILENT = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER)


def counted(root: Path) -> Mapping[str, int]:
    """By what is counted. Tokens are those of code, without docstrings: joining lines changes none."""
    product, tests = list(_files(root, _PRODUCT)), list(_files(root, ("tests",)))
    special = [path for path in product if path.relative_to(root).as_posix() != _NAMED_FOR_IT]
    return {
        "product: files": len(product),
        "product: lines": sum(map(_lines, product)),
        "product: tokens of code": sum(map(_tokens, product)),
        "tests: lines": sum(map(_lines, tests)),
        "lines that mention fast or not running": sum(
            bool(_SPECIAL.search(line)) for path in special for line in path.read_text("utf-8").splitlines()
        ),
        f"folders of more than {_AT_A_GLANCE} files": len(_crowded(product)),
        "longest chain of imports": len(longest_chain(root)),
    }


def _files(root: Path, folders: tuple[str, ...]) -> Iterator[Path]:
    for folder in folders:
        yield from sorted((root / folder).rglob("*.py"))


def _lines(path: Path) -> int:
    return len(path.read_text("utf-8").splitlines())


def _tokens(path: Path) -> int:
    """A string that is a statement of its own is a docstring."""
    count, begins = 0, True
    for token in tokenize.tokenize(io.BytesIO(path.read_bytes()).readline):
        if token.type in _SILENT:
            begins |= token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
            continue
        count += not (begins and token.type == tokenize.STRING)
        begins = False
    return count


def _crowded(product: list[Path]) -> list[Path]:
    folders = {path.parent for path in product}
    return [folder for folder in folders if sum(path.parent == folder and path.stem != "__init__" for path in product) > _AT_A_GLANCE]


def longest_chain(root: Path) -> list[str]:
    """The modules on the longest way along imports, from where it begins."""
    folders = [root, *(folder for folder in (root / "packages").glob("*/src"))]
    names = [name for name in _PACKAGES if any((folder / name).is_dir() for folder in folders)]
    sys.path[:0] = map(str, folders)
    try:
        graph = grimp.build_graph(*names, exclude_type_checking_imports=True, cache_dir=None)
    finally:
        del sys.path[: len(folders)]
    sys.setrecursionlimit(10_000)

    @cache
    def chain(module: str) -> list[str]:
        further = [chain(other) for other in graph.find_modules_directly_imported_by(module)]
        return [module, *max(further, key=len)] if further else [module]

    return max(map(chain, graph.modules), key=len)


if __name__ == "__main__":
    json.dump(counted(Path(sys.argv[1])), sys.stdout)
