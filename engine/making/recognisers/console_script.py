"""Recognises programs that a Python project installs."""

from collections.abc import Iterator, Mapping

from engine.making.projects import PYPROJECT, Table, pyproject_of
from engine.making.recognisers.recogniser import is_aside
from engine.making.trees import Tree
from toolagent.contracts.making import Finding, FindingKind

__all__ = ["recognise_console_scripts"]

_MOST = 10
_MOST_NAMED = 50
_LONGEST = 200


def recognise_console_scripts(tree: Tree) -> Iterator[Finding]:
    """`details.scripts`: `module:function` by the name of the program."""
    found = [path for path in tree.files if path.name == PYPROJECT]
    for path in sorted(found[:_MOST], key=lambda path: is_aside(path.as_posix())):
        scripts = _scripts(pyproject_of(tree, path.parent))
        if scripts:
            names = ", ".join(sorted(scripts))
            summary = f"Installs the programs {names}."
            yield Finding(kind=FindingKind.CONSOLE_SCRIPT, path=path.as_posix(), summary=summary, details={"scripts": dict(scripts)})


def _scripts(project: Table) -> Mapping[str, str]:
    tables = (project.table("project").table("scripts"), project.table("tool").table("poetry").table("scripts"))
    found = [(name[:_LONGEST], target[:_LONGEST]) for table in tables for name, target in table.values.items() if isinstance(target, str)]
    return dict(found[:_MOST_NAMED])
