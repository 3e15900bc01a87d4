"""Inspects a repository without a model, and without running any of it."""

from collections.abc import Sequence

import structlog

from engine.making.recognisers import RECOGNISERS
from engine.making.recognisers.recogniser import Recogniser
from engine.making.repositories.trees import Tree
from toolagent.contracts.making import Finding, FindingKind, Inspection

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_README_CHARACTERS = 4_000
_MOST_TOLD = 500
_CODE = frozenset(
    {
        ".py", ".js", ".mjs", ".cjs", ".ts", ".tsx", ".jsx", ".go", ".rs", ".java", ".kt", ".rb", ".php", ".c", ".cc", ".cpp", ".h",
        ".hpp", ".cs", ".swift", ".scala", ".sh", ".pl", ".lua", ".r", ".jl", ".ex", ".exs", ".clj", ".hs", ".ml", ".dart", ".ipynb",
    }
)  # fmt: skip


def inspect(tree: Tree) -> Inspection:
    """The findings, in order of preference. Reads a bounded part of the files, follows no link. Blocks."""
    findings = [finding for kind, recognise in RECOGNISERS.items() for finding in _found(kind, recognise, tree)]
    return Inspection(
        findings=tuple(one.model_copy(update={"summary": one.summary[:_MOST_TOLD]}) for one in findings),
        files=tree.extent.count,
        size=tree.extent.size,
        readme=_readme(tree),
        code_files=sum(path.suffix.lower() in _CODE for path in tree.files),
        is_whole=tree.is_whole,
    )


def _found(kind: FindingKind, recognise: Recogniser, tree: Tree) -> Sequence[Finding]:
    """The findings of one recogniser; none if hostile text exceeds its limits."""
    try:
        return tuple(recognise(tree))
    except (ValueError, LookupError, RecursionError):
        _log.warning("recogniser_failed", kind=kind.value, exc_info=True)
        return ()


def _readme(tree: Tree) -> str:
    found = next((path for path in tree.files if path.name.lower().startswith("readme")), None)
    text = (tree.text(found) if found else None) or ""
    return text[:_README_CHARACTERS].replace("\0", "")
