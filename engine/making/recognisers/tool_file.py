"""Recognises `*.tool.json` files, in which a repository describes its tools."""

from collections.abc import Iterator

from pydantic import JsonValue

from engine.making.repositories.asides import is_example
from engine.making.repositories.trees import Tree
from toolagent.contracts.making import Finding, FindingKind
from toolagent.contracts.tool_files import ExternalScript
from toolagent.core.catalog.tool_files import SUFFIX, ReadToolFile, read_tool_file
from toolagent.core.json_paths import json_path
from toolagent.validation.tool_folders import NoScriptError, find_script
from toolagent.validation.tool_rules import ToolRules

_MOST = 50
_MOST_TOLD = 5
_MOST_NAMED = 100
_RULES = ToolRules()


def recognise_tool_files(tree: Tree) -> Iterator[Finding]:
    """`details`: `tool_id`, `version`, `script` if it is usable, and `aside` for an example; else `faults`, the reasons."""
    found = [path.as_posix() for path in tree.files if path.name.endswith(SUFFIX) and not path.name.startswith(".")]
    found.sort(key=is_example)
    findings = [_finding(tree, path) for path in found[:_MOST]]
    findings += [_faulty(path, f"There are more than {_MOST} descriptions of tools.") for path in found[_MOST:_MOST_NAMED]]
    yield from sorted(findings, key=lambda one: ("faults" in one.details, is_example(one.path)))


def _finding(tree: Tree, path: str) -> Finding:
    text = tree.text(path)
    if text is None:
        return _faulty(path, "It is too large, no UTF-8 text, or cannot be read.")
    try:
        read = read_tool_file(text, _RULES)
    except (RecursionError, ValueError) as error:
        return _faulty(path, f"It cannot be read: {type(error).__name__}.")
    if read.file is None:
        return _faulty(path, *(f"{fault.path}: {fault.reason} (line {fault.place.line})" for fault in read.faults))
    return _usable(tree, path, read)


def _usable(tree: Tree, path: str, read: ReadToolFile) -> Finding:
    file = read.file
    if file is None or not isinstance(file.handler, ExternalScript):
        return _faulty(path, "$.handler: Only a script of the repository can be its tool, no method of this service.")
    if file.handler.content is not None:
        return _faulty(path, "$.handler.content: The files of a repository's tool lie beside it, in no content store.")
    try:
        script = find_script(file.handler, (tree.folder / path).parent, None)
    except NoScriptError as error:
        return _faulty(path, f"{json_path(error.field)}: {error}")
    place = script.folder.relative_to(tree.folder.resolve()) / script.name
    details: dict[str, JsonValue] = {"tool_id": file.tool_id, "version": file.version, "script": place.as_posix()}
    if is_example(path):
        details["aside"] = True
    return Finding(kind=FindingKind.TOOL_FILE, path=path, summary=f"The tool {file.tool_id} {file.version}, a script.", details=details)


def _faulty(path: str, *faults: str) -> Finding:
    summary = f"A description of a tool that cannot be used: {'; '.join(faults[:_MOST_TOLD]) or 'unknown'}"
    return Finding(kind=FindingKind.TOOL_FILE, path=path, summary=summary, details={"faults": list(faults)})
