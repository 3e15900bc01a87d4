"""Builds the tools that a repository describes in `*.tool.json`, under the task's name."""

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
    """The tools, and the folder of each script: below `work` if the script names its files. Raises OSError, ValueError. Blocks.

    Tool ids begin with the task's name, so that a repository cannot replace another tool.
    """
    tree = Tree.read(repository)
    read = [_read(tree, path) for path in paths]
    ids = about.ids(_names([file for file, _, _ in read]))
    entries = [_entry(*one, tool_id, about.groups(len(read))) for one, tool_id in zip(read, ids, strict=True)]
    by_path = {path: (file.tool_id, script) for path, (file, _, script) in zip(paths, read, strict=True)}
    for path, (index, reason) in anothers_scripts(by_path).items():
        raise ValueError(f"{path}: $.handler.files[{index}]: {reason}")
    return about.candidate(entries), _folders_of({tool_id: script for tool_id, (_, _, script) in zip(ids, read, strict=True)}, work)


def left_out_of(repository: Path, paths: Sequence[str]) -> tuple[LeftOut, ...]:
    """The other `*.tool.json` files, each with the reason. Blocks."""
    found = (one for one in recognise_tool_files(Tree.read(repository)) if one.path not in paths)
    return tuple(LeftOut(one.path, one.summary if "faults" in one.details else _ASIDE) for one in found)


def _read(tree: Tree, path: str) -> tuple[ToolFile, ExternalScript, Script]:
    text = tree.text(path)
    read = tool_json.read(text) if text is not None else None
    if read is None or read.file is None:
        told = "; ".join(f"{fault.path}: {fault.reason}" for fault in read.faults[:5]) if read else "it cannot be read"
        raise ValueError(f"{path}: {told}")
    handler = read.file.handler
    if not isinstance(handler, ExternalScript) or handler.content is not None:
        raise ValueError(f"{path}: Only a script beside it can be the tool of a repository.")
    try:
        return read.file, handler, find_script(handler, (tree.folder / path).parent, None)
    except NoScriptError as error:
        raise ValueError(f"{path}: {error}") from error


def _folders_of(scripts: Mapping[str, Script], work: Path) -> dict[str, Path]:
    """The script's folder by tool id, or a folder below `work` with copies of the files that the script names."""
    remove(work)
    folders: dict[str, Path] = {}
    size = count = 0
    for tool_id, script in scripts.items():
        folders[tool_id] = script.folder if script.given is None else work / tool_id
        for name in script.given or ():
            source, target = script.folder / name, work / tool_id / name
            # A link counts, and is copied, as the file it leads to.
            size, count = size + source.stat().st_size, count + 1
            if size > MAX_BYTES or count > MAX_FILES:
                raise ValueError(
                    f"The files that the tools name are more than {MAX_BYTES // 1_048_576} MiB or {MAX_FILES:,} files together."
                )
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    return folders


def _entry(file: ToolFile, handler: ExternalScript, script: Script, tool_id: str, groups: tuple[str, ...]) -> ToolEntry:
    source = ScriptSource(script_path=script.name, language=handler.language, entry_point=handler.entry_point)
    told = {"tool_id": tool_id, "group_ids": groups, "status": ToolStatus.ACTIVE, "backend_runtime": source.traits.runtime}
    return ToolEntry(manifest=ToolManifest.model_validate(tool_json.manifest_in(file).model_copy(update=told)), sources=(source,))


def _names(files: Sequence[ToolFile]) -> list[str]:
    """The last part of each tool's id; numbered if it is not unique, as for two versions."""
    found: list[str] = []
    for file in files:
        found.append(unused(_NOT_IN_AN_ID.sub("_", file.tool_id.rpartition(":")[2]), found))
    return found
