"""Recognises servers of the Model Context Protocol."""

import json
import re
from collections.abc import Iterator
from typing import cast

from engine.making.projects import PYPROJECT, dependencies_named
from engine.making.recognisers.recogniser import is_aside
from engine.making.trees import Tree
from toolagent.contracts.making import Finding, FindingKind

__all__ = ["recognise_mcp_servers"]

_PACKAGES = frozenset({"mcp", "fastmcp"})
_NODE_PACKAGE = "@modelcontextprotocol/sdk"
_CODE = re.compile(r"^\s*(?:from|import)\s+(?:mcp\.server|fastmcp)\b", re.MULTILINE)
_MOST = 400


def recognise_mcp_servers(tree: Tree) -> Iterator[Finding]:
    """`details.by`: `code`, `dependency` or `package.json`. It is recorded; nothing is built of it yet."""
    sources = [path for path in tree.files if path.suffix == ".py" and not is_aside(path.as_posix())][:_MOST]
    code = next((path for path in sources if _CODE.search(tree.text(path) or "")), None)
    if code is not None:
        yield _finding(code.as_posix(), "code")
        return
    for path in tree.files:
        if path.name == PYPROJECT and _PACKAGES & dependencies_named(tree, path.parent):
            yield _finding(path.as_posix(), "dependency")
            return
        if path.name == "package.json" and _NODE_PACKAGE in _node_dependencies(tree.text(path)):
            yield _finding(path.as_posix(), "package.json")
            return


def _finding(path: str, by: str) -> Finding:
    return Finding(kind=FindingKind.MCP_SERVER, path=path, summary="An MCP server.", details={"by": by})


def _node_dependencies(text: str | None) -> set[str]:
    try:
        read: object = json.loads(text or "")
    except (ValueError, RecursionError):
        return set()
    told = cast("dict[str, object]", read).get("dependencies") if isinstance(read, dict) else None
    return set(cast("dict[str, object]", told)) if isinstance(told, dict) else set()
