"""`toolagent validate`: checks files of tools without a service."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from pydantic import JsonValue

from toolagent.cli.failures import ExitCode, reported
from toolagent.cli.options import AsJson
from toolagent.cli.parameters import ParameterError
from toolagent.cli.render import show_json, show_note, show_plain
from toolagent.contracts.tool_files import ExternalScript
from toolagent.core.catalog.commented_json import Place
from toolagent.core.catalog.dependencies import Node
from toolagent.core.catalog.tool_file_rules import circles, doubles
from toolagent.core.catalog.tool_files import SUFFIX, FileFault, ReadToolFile, read_tool_file
from toolagent.validation.tool_folders import (
    YAML_FORM,
    NoScriptError,
    NotReadError,
    Script,
    anothers_scripts,
    files_below,
    find_script,
    real,
    text_of,
    yaml_forms,
)
from toolagent.validation.tool_rules import ToolRules, matches

__all__ = ["validate"]

_RULES = ToolRules()
_TOOLS = "tools"
_SCRIPTS = "scripts"


@dataclass(frozen=True, slots=True)
class _Checked:
    path: Path
    read: ReadToolFile
    faults: list[FileFault]
    script: Script | None = None


def validate(
    target: Annotated[Path, typer.Argument(metavar="FILE|DIR", show_default=False, help="One file, or a folder with all below it.")],
    data_dir: Annotated[
        Path | None,
        typer.Option(
            envvar="TOOL_AGENT_DATA_DIR",
            show_default=False,
            help="The data folder of the service; by default the folder with `tools` that contains FILE or DIR, else `data`.",
        ),
    ] = None,
    script_root: Annotated[
        Path | None,
        typer.Option(
            envvar="TOOL_AGENT_SCRIPT_ROOT",
            show_default=False,
            help="The folder of scripts that are not beside their file; by default `scripts` in the data folder.",
        ),
    ] = None,
    json_output: AsJson = False,
) -> None:
    """Check `*.tool.json` files: each fault with its line, its JSON path and the reason. Exit code 1 when there are any.

    Needs no service, so it does not check names of service methods and dependencies on other tools.

    `toolagent validate data/tools`

    `toolagent validate data/tools/core/execute-python-script.tool.json`
    """
    with reported():
        files = _files(target)
        scripts = script_root or (data_dir or _data_dir_of(target)) / _SCRIPTS
        checked = [_checked(path, scripts) for path in files]
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
    # The first of several names of one file counts.
    found = {real(path): path for path in sorted([*files_below(target), *yaml_forms(target)], reverse=True)}
    if not found:
        raise ParameterError(f"There is no *{SUFFIX} in {str(target)!r}.")
    return sorted(found.values())


def _data_dir_of(target: Path) -> Path:
    """The data folder of a service whose catalog contains the target."""
    place = target.absolute()
    around = (folder for folder in (place, *place.parents) if (folder / _TOOLS).is_dir())
    return next((folder for folder in around if folder == place or place.is_relative_to(folder / _TOOLS)), Path("data"))


def _checked(path: Path, script_root: Path) -> _Checked:
    if path.suffix in {".yaml", ".yml"}:
        return _unread(path, YAML_FORM)
    try:
        read = read_tool_file(text_of(path), _RULES)
    except NotReadError as error:
        return _unread(path, str(error))
    faults = [*read.faults]
    if not path.name.endswith(SUFFIX):
        faults.append(FileFault("$", f"A service loads only files whose names end in {SUFFIX}.", Place(1, 1)))
    script = None
    if read.file is not None and isinstance(handler := read.file.handler, ExternalScript) and handler.content is None:
        try:
            script = find_script(handler, path.parent, script_root)
        except NoScriptError as error:
            faults.append(read.fault(error.field, str(error)))
    return _Checked(path, read, faults, script)


def _unread(path: Path, reason: str) -> _Checked:
    return _Checked(path, ReadToolFile(None, {}, ()), [FileFault("$", reason, Place(1, 1))])


def _compare(checked: Sequence[_Checked]) -> None:
    """Adds the faults that follow from other files."""
    every = {str(one.path): one for one in checked}
    scripts = {name: (one.read.file.tool_id, one.script) for name, one in every.items() if one.read.file is not None and one.script}
    for name, (index, reason) in anothers_scripts(scripts).items():
        every[name].faults.append(every[name].read.fault(("handler", "files", index), reason))
    by_name = {name: one for name, one in every.items() if not one.faults}
    files = {name: file for name, one in by_name.items() if (file := one.read.file) is not None}
    nodes = {name: Node(file.tool_id, file.version, file.dependencies) for name, file in files.items()}
    twins = doubles(nodes, {})
    rounds = circles({name: node for name, node in nodes.items() if name not in twins}, (), matches)
    for field, reasons in (("version", twins), ("dependencies", rounds)):
        for name, reason in reasons.items():
            by_name[name].faults.append(by_name[name].read.fault((field,), reason))


def _as_json(path: Path, fault: FileFault) -> dict[str, JsonValue]:
    place = fault.place
    return {"file": str(path), "line": place.line, "column": place.column, "field": fault.path, "reason": fault.reason}
