"""Small repositories, and the findings in them."""

import textwrap
from collections.abc import Mapping
from pathlib import Path

from engine.making.inspection import inspect
from engine.making.repositories.trees import Tree
from toolagent.contracts.making import Finding, FindingKind

__all__ = ["found", "only"]


def found(folder: Path, files: Mapping[str, str]) -> tuple[Finding, ...]:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(textwrap.dedent(text))
    return inspect(Tree.read(folder)).findings


def only(findings: tuple[Finding, ...], kind: FindingKind) -> Finding:
    (one,) = (finding for finding in findings if finding.kind is kind)
    return one
