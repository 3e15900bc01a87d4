"""Finds the `*.tool.json` of some folders, and decides which of them count."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from engine.registry.formats import tool_json
from toolagent.contracts.manifest import ToolStatus
from toolagent.contracts.records import CatalogFault
from toolagent.contracts.tool_files import ExternalScript, ToolFile
from toolagent.core.catalog.dependencies import Node
from toolagent.core.catalog.tool_file_rules import circles, doubles
from toolagent.core.catalog.tool_files import FileFault, ReadToolFile
from toolagent.core.texts import well_formed
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
from toolagent.validation.tool_rules import matches
from toolagent.validation.versions import newest_first

_MAX_FILES = 10_000

Version = str
"""`tool_id@version`."""


@dataclass(frozen=True, slots=True)
class ToolFolders:
    """Folders with tool files. A missing folder is a fault if `expected`; its tools stay in any case.

    `shipped` has the tools that come with the engine. Each exists unless a file of the folders or another tool has its id.
    """

    folders: tuple[Path, ...]
    script_root: Path | None = None
    expected: bool = False
    shipped: Path | None = None


@dataclass(frozen=True, slots=True)
class FoundTool:
    """A file without faults of its own. `name` identifies it, also in messages."""

    name: str
    read: ReadToolFile
    file: ToolFile
    script: Script | None = None

    @property
    def version(self) -> Version:
        return f"{self.file.tool_id}@{self.file.version}"

    def fault(self, path: Sequence[str | int], reason: str) -> CatalogFault:
        return _catalog_fault(self.name, self.read.fault(path, reason))


@dataclass(slots=True)
class FoundFiles:
    """`faulty` are names of unusable files. `away` are folders that could not be read."""

    tools: list[FoundTool] = field(default_factory=list[FoundTool])
    faulty: set[str] = field(default_factory=set[str])
    faults: list[CatalogFault] = field(default_factory=list[CatalogFault])
    away: list[str] = field(default_factory=list[str])

    def refuse(self, tool: FoundTool, path: Sequence[str | int], reason: str) -> None:
        self.tools.remove(tool)
        self.faulty.add(tool.name)
        self.faults.append(tool.fault(path, reason))

    def refuse_named(self, reasons: Mapping[str, str], field_name: str) -> None:
        for tool in [*self.tools]:
            if (reason := reasons.get(tool.name)) is not None:
                self.refuse(tool, (field_name,), reason)

    @property
    def nodes(self) -> dict[str, Node]:
        """Nodes of the dependency graph, by file name."""
        return {tool.name: Node(tool.file.tool_id, tool.file.version, tool.file.dependencies) for tool in self.tools}

    def keeps(self, name: str) -> bool:
        """Whether the earlier content of a file still counts: the file is faulty, or its folder is unreadable."""
        return name in self.faulty or any(name.startswith(f"{folder}/") for folder in self.away)


def find_tool_files(where: ToolFolders, taken: Collection[str] = ()) -> FoundFiles:
    """All files below the folders, by name, and the shipped ones whose ids are not `taken`. Blocks."""
    found = _found_below(where)
    if where.shipped is not None and where.shipped.is_dir():
        shipped = _found_below(ToolFolders((where.shipped,)))
        used = {*taken, *(tool.file.tool_id for tool in found.tools)}
        found.tools += [tool for tool in shipped.tools if tool.file.tool_id not in used]
        found.faults += shipped.faults
    return found


def _found_below(where: ToolFolders) -> FoundFiles:
    found = FoundFiles()
    seen: set[Path] = set()
    shared = (*where.folders, *([where.script_root] if where.script_root else []))
    for folder in where.folders:
        if not folder.is_dir():
            found.away.append(folder.as_posix())
            if where.expected:
                reason = "This folder is not there. Set TOOL_AGENT_TOOL_DIRS; the tools that came from it stay."
                found.faults.append(CatalogFault(file=folder.as_posix(), field="$", reason=reason))
            continue
        found.faults += [CatalogFault(file=path.as_posix(), field="$", reason=YAML_FORM) for path in yaml_forms(folder)]
        for path in sorted(_files_below(folder, found)):
            leads_to = real(path)
            if leads_to not in seen:
                seen.add(leads_to)
                _take(found, path, where.script_root, shared)
    _without_anothers_scripts(found)
    return found


def _without_anothers_scripts(found: FoundFiles) -> None:
    faults = anothers_scripts({tool.name: (tool.file.tool_id, tool.script) for tool in found.tools if tool.script is not None})
    for tool in [*found.tools]:
        if (fault := faults.get(tool.name)) is not None:
            found.refuse(tool, ("handler", "files", fault[0]), fault[1])


def without_doubles(found: FoundFiles, before: Mapping[str, Version], taken: Mapping[str, str]) -> None:
    """Refuse files whose id, or id and version, is taken. The earlier one stays.

    `before` maps files to their versions at the last import. `taken` maps ids of other tools to their owners.
    """
    for tool in [*found.tools]:
        if (owner := taken.get(tool.file.tool_id)) is not None:
            found.refuse(tool, ("toolId",), f"{owner} has this id.")
    found.refuse_named(doubles(found.nodes, before, [name for name in before if found.keeps(name)]), "version")


def kept(found: FoundFiles, before: Mapping[str, Version], taken: Mapping[str, str]) -> dict[str, Version]:
    """By file name, the versions that stay as imported: their files are faulty now, or unreadable."""
    used = {tool.version for tool in found.tools}
    return {
        name: version
        for name, version in before.items()
        if found.keeps(name) and version not in used and version.partition("@")[0] not in taken
    }


def without_cycles(found: FoundFiles, others: Collection[Node]) -> None:
    """Refuse every file whose tool depends on itself through others, including tools of other origins."""
    found.refuse_named(circles(found.nodes, others, matches), "dependencies")


def heads(found: FoundFiles, staying: Collection[Version]) -> dict[str, str]:
    """By tool id, the version to activate: the newest active one, releases before pre-releases."""
    by_tool: dict[str, dict[str, bool]] = {}
    for tool in found.tools:
        by_tool.setdefault(tool.file.tool_id, {})[tool.file.version] = tool.file.status is ToolStatus.ACTIVE
    for tool_id, version in (one.split("@", 1) for one in staying):
        by_tool.setdefault(tool_id, {})[version] = True
    return {tool_id: _newest(versions) for tool_id, versions in by_tool.items()}


def _newest(versions: Mapping[str, bool]) -> str:
    ordered = newest_first(versions)
    return min(ordered, key=lambda version: (not versions[version], "-" in version.partition("+")[0], ordered.index(version)))


def _files_below(folder: Path, found: FoundFiles) -> Iterator[Path]:
    def note(error: OSError) -> None:
        place = well_formed(Path(str(error.filename)).as_posix())
        found.away.append(place)
        found.faults.append(CatalogFault(file=place, field="$", reason=f"The folder cannot be read: {error.strerror}."))

    for count, path in enumerate(files_below(folder, note)):
        if count == _MAX_FILES:
            reason = f"There are more than {_MAX_FILES} files; the rest is not read."
            found.faults.append(CatalogFault(file=folder.as_posix(), field="$", reason=reason))
            found.away.append(folder.as_posix())
            return
        yield path


def _take(found: FoundFiles, path: Path, script_root: Path | None, shared: tuple[Path, ...]) -> None:
    name = well_formed(path.as_posix())
    try:
        text = text_of(path)
    except NotReadError as error:
        found.faulty.add(name)
        found.faults.append(CatalogFault(file=name, field="$", reason=str(error)))
        return
    read = tool_json.read(text)
    if read.file is None:
        found.faulty.add(name)
        found.faults += [_catalog_fault(name, fault) for fault in read.faults]
        return
    tool = FoundTool(name, read, read.file)
    found.tools.append(tool)
    handler = read.file.handler
    if isinstance(handler, ExternalScript) and handler.content is None:
        try:
            script = find_script(handler, path.parent, script_root, shared)
        except NoScriptError as error:
            found.refuse(tool, error.field, str(error))
        else:
            found.tools[-1] = replace(tool, script=script)


def _catalog_fault(name: str, fault: FileFault) -> CatalogFault:
    reason = f"{fault.reason} (line {fault.place.line}, column {fault.place.column})"
    return CatalogFault(file=name, field=fault.path, reason=reason)
