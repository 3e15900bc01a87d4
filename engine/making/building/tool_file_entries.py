"""Tools of `*.tool.json` that a repository brings, under the name of the task."""

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from engine.disk.removal import remove
from engine.making.failures import LeftOut
from engine.making.openapi.tools import Described
from engine.making.openapi.unused_names import unused
from engine.making.recognisers.tool_file import recognise_tool_files
from engine.making.repositories.trees import Tree
from engine.registry.archives import MAX_BYTES, MAX_FILES
from engine.registry.formats import tool_json
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.making import Candidate
from toolagent.contracts.manifest import ToolManifest, ToolStatus
from toolagent.contracts.sources import ScriptSource
from toolagent.contracts.tool_files import ExternalScript, ToolFile
from toolagent.validation.tool_folders import NoScriptError, Script, anothers_scripts, find_script

_ASIDE = "It is in a folder for examples or tests."

_NOT_IN_AN_ID = re.compile(r"[^a-z0-9_-]+")


def tool_file_candidate(repository: Path, paths: Sequence[str], about: Described, work: Path) -> tuple[Candidate, dict[str, Path]]:
    """The tools, and the folder of each one's script, below `work` where that names its files. Raises OSError, ValueError. Blocks.

    Their ids begin with the task's name, so a repository cannot replace another tool.
    """
    tree = Tree.read(repository)
    read = [_read(tree, path) for path in paths]
    ids = about.ids(_names([file for file, _ in read]))
    groups = about.groups(len(read))
    entries = [_entry(file, script, tool_id, groups) for (file, script), tool_id in zip(read, ids, strict=True)]
    by_path = {path: (file.tool_id, script) for path, (file, script) in zip(paths, read, strict=True)}
    for path, (index, reason) in anothers_scripts(by_path).items():
        raise ValueError(f"{path}: $.handler.files[{index}]: {reason}")
    folders = _folders_of({tool_id: script for (_, script), tool_id in zip(read, ids, strict=True)}, work)
    return about.candidate(entries), folders


def left_out_of(repository: Path, paths: Sequence[str]) -> tuple[LeftOut, ...]:
    """The descriptions of tools that are none of these, and why not. Blocks."""
    found = (one for one in recognise_tool_files(Tree.read(repository)) if one.path not in paths)
    return tuple(LeftOut(one.path, one.summary if "faults" in one.details else _ASIDE) for one in found)


def _read(tree: Tree, path: str) -> tuple[ToolFile, Script]:
    text = tree.text(path)
    read = tool_json.read(text) if text is not None else None
    if read is None or read.file is None:
        told = "; ".join(f"{fault.path}: {fault.reason}" for fault in read.faults[:5]) if read else "it cannot be read"
        raise ValueError(f"{path}: {told}")
    if not isinstance(read.file.handler, ExternalScript) or read.file.handler.content is not None:
        raise ValueError(f"{path}: Only a script beside it can be the tool of a repository.")
    try:
        return read.file, find_script(read.file.handler, (tree.folder / path).parent, None)
    except NoScriptError as error:
        raise ValueError(f"{path}: {error}") from error


def _folders_of(scripts: Mapping[str, Script], work: Path) -> dict[str, Path]:
    """By tool, its script's own folder, or one below `work` with a copy of the files that it is given."""
    remove(work)
    folders: dict[str, Path] = {}
    size = count = 0
    for tool_id, script in scripts.items():
        folders[tool_id] = script.folder if script.given is None else work / tool_id
        for name in script.given or ():
            source, target = script.folder / name, work / tool_id / name
            # As a link counts, it is copied: as what it leads to.
            size, count = size + source.stat().st_size, count + 1
            if size > MAX_BYTES or count > MAX_FILES:
                limit = f"{MAX_BYTES // 1_048_576} MiB or {MAX_FILES:,} files"
                raise ValueError(f"The files that the tools name are more than {limit} together.")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    return folders


def _entry(file: ToolFile, script: Script, tool_id: str, groups: tuple[str, ...]) -> ToolEntry:
    handler = file.handler
    if not isinstance(handler, ExternalScript):
        raise TypeError(f"{file.tool_id} is no script.")
    source = ScriptSource(script_path=script.name, language=handler.language, entry_point=handler.entry_point)
    told = {"tool_id": tool_id, "group_ids": groups, "status": ToolStatus.ACTIVE, "backend_runtime": source.traits.runtime}
    return ToolEntry(manifest=ToolManifest.model_validate(tool_json.manifest_in(file).model_copy(update=told)), sources=(source,))


def _names(files: Sequence[ToolFile]) -> list[str]:
    """What each file calls its tool; numbered where that is the same, as for two versions."""
    found: list[str] = []
    for file in files:
        found.append(unused(_NOT_IN_AN_ID.sub("_", file.tool_id.rpartition(":")[2]), found))
    return found
