"""`toolagent validate`: what is wrong with files of tools, without a service."""

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from pydantic import JsonValue

from toolagent.cli.failures import ExitCode, reported
from toolagent.cli.options import AsJson
from toolagent.cli.parameters import ParameterError
from toolagent.cli.render import show_json, show_note, show_plain
from toolagent.cli.tool_rules import ToolRules
from toolagent.contracts.tool_files import ExternalScript, ToolFile
from toolagent.core.commented_json import Place
from toolagent.core.dependencies import Node, in_cycles
from toolagent.core.tool_files import SUFFIX, FileFault, ReadToolFile, read_tool_file

__all__ = ["validate"]

_LEFT_OUT = frozenset({".venv", "__pycache__", ".git", "node_modules", ".pytest_cache", ".ruff_cache", ".mypy_cache"})
_RULES = ToolRules()


@dataclass(frozen=True, slots=True)
class _Checked:
    path: Path
    read: ReadToolFile
    faults: list[FileFault]


def validate(
    target: Annotated[Path, typer.Argument(metavar="FILE|DIR", show_default=False, help="One file, or a folder with all below it.")],
    script_root: Annotated[
        Path, typer.Option(envvar="TOOL_AGENT_SCRIPT_ROOT", help="Where scripts are that are not beside their file.")
    ] = Path("data/scripts"),
    tool_dirs: Annotated[
        str,
        typer.Option(
            envvar="TOOL_AGENT_TOOL_DIRS", help="Folders that hold many tools, separated by commas: no script may lie right there."
        ),
    ] = "data/tools",
    json_output: AsJson = False,
) -> None:
    """Check `*.tool.json` files: each fault with its line, its JSON path and the reason. Exit code 1 when there are any.

    Needs no service. Which methods a service has, and which tools are there that others depend on, only the service knows.

    `toolagent validate data/tools`

    `toolagent validate data/tools/core/execute-python-script.tool.json`
    """
    with reported():
        files = _files(target)
        shared = _shared(target, files, (script_root, *(Path(name.strip()) for name in tool_dirs.split(",") if name.strip())))
        checked = [_checked(path, script_root, shared) for path in files]
        _compare(checked)
        faults = [(one.path, fault) for one in checked for fault in one.faults]
        if json_output:
            show_json([_as_json(path, fault) for path, fault in faults])
        else:
            for path, fault in faults:
                show_plain(f"{path}:{fault.place.line}:{fault.place.column}: {fault.path}: {fault.reason}")
        good = sum(not one.faults for one in checked)
        show_note(f"{good} of {len(checked)} files can be used.", "red" if faults else "green")
        if faults:
            raise typer.Exit(ExitCode.FAILED)


def _files(target: Path) -> list[Path]:
    if not target.is_dir():
        if not target.exists():
            raise ParameterError(f"There is nothing at {str(target)!r}.")
        return [target]
    found = sorted(_below(target))
    if not found:
        raise ParameterError(f"There is no *{SUFFIX} in {str(target)!r}.")
    return found


def _below(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _LEFT_OUT]
        yield from (Path(place, name) for name in names if name.endswith(SUFFIX) and not name.startswith("."))


def _shared(target: Path, files: Sequence[Path], known: Iterable[Path]) -> frozenset[Path]:
    """Folders in which a script would be given other tools: the known ones, or the target itself where it is outside of them."""
    folders = {folder.resolve() for folder in known}
    is_inside = any(target.resolve().is_relative_to(folder) for folder in folders)
    return frozenset(folders if is_inside or len(files) == 1 else {*folders, target.resolve()})


def _checked(path: Path, script_root: Path, shared: Collection[Path]) -> _Checked:
    try:
        read = read_tool_file(path.read_bytes().decode("utf-8-sig"), _RULES)
    except UnicodeDecodeError as error:
        return _Checked(path, ReadToolFile(None, {}, ()), [FileFault("$", f"Not UTF-8 text (byte {error.start}).", Place(1, 1))])
    except OSError as error:
        return _Checked(path, ReadToolFile(None, {}, ()), [FileFault("$", f"It cannot be read: {error.strerror}.", Place(1, 1))])
    faults = [*read.faults]
    if not path.name.endswith(SUFFIX):
        faults.append(FileFault("$", f"A service loads only files whose names end in {SUFFIX}.", Place(1, 1)))
    if read.file is not None and (fault := _script_fault(read, read.file, (path.parent, script_root), shared)) is not None:
        faults.append(fault)
    return _Checked(path, read, faults)


def _script_fault(read: ReadToolFile, file: ToolFile, bases: Sequence[Path], shared: Collection[Path]) -> FileFault | None:
    handler = file.handler
    if not isinstance(handler, ExternalScript) or handler.content is not None:
        return None
    found = next((base for base in bases if (base / handler.script_path).is_file()), None)
    if found is None:
        reason = f"There is no file {handler.script_path!r} {' nor '.join(f'in {str(base)!r}' for base in bases)}."
    elif not (real := (found / handler.script_path).resolve()).is_relative_to(found.resolve()):
        reason = f"{handler.script_path!r} leads out of {str(found)!r} by a link."
    elif real.parent in shared:
        reason = f"{real.name!r} lies among other tools, and everything beside a script is given to it: give it a folder."
    else:
        return None
    return read.fault(("handler", "scriptPath"), reason)


def _compare(checked: Sequence[_Checked]) -> None:
    """What is wrong with files only beside others."""
    nodes: dict[Node, _Checked] = {}
    for one in checked:
        if (file := one.read.file) is None:
            continue
        twin = next((other for node, other in nodes.items() if (node.tool_id, node.version) == (file.tool_id, file.version)), None)
        if twin is not None:
            reason = f"{twin.path} has version {file.version} of {file.tool_id!r} already."
            one.faults.append(one.read.fault(("version",), reason))
        else:
            nodes[Node(file.tool_id, file.version, file.dependencies)] = one
    for node, way in in_cycles(nodes, _RULES.matches).items():
        reason = f"The tools depend on each other in a circle: {' → '.join(way)}."
        nodes[node].faults.append(nodes[node].read.fault(("dependencies",), reason))


def _as_json(path: Path, fault: FileFault) -> dict[str, JsonValue]:
    place = fault.place
    return {"file": str(path), "line": place.line, "column": place.column, "field": fault.path, "reason": fault.reason}
