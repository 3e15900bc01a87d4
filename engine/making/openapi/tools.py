"""The tools that an OpenAPI document describes: one for its only operation, else one for each that is wanted, together in a group."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from engine.making.failures import BuildFailed, LeftOut
from engine.making.openapi.documents.document import DocumentRefused, OpenApiDocument, part
from engine.making.openapi.names import operation_names, tool_id_of
from engine.making.openapi.operations import Operation, operations_of
from engine.making.openapi.requests import RequestShape, request_shape
from engine.making.openapi.schemas import Schemas
from engine.making.openapi.selection import fitting, wanted
from engine.validation.references import SchemaNotFollowedError, written_out
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.making import Candidate
from toolagent.contracts.manifest import PermissionClass, SideEffectScope, ToolGroup, ToolManifest
from toolagent.contracts.sources import PackedSource, ToolSource
from toolagent.validation.schemas import schema_faults

MOST_TOOLS = 100
LONGEST_NAME = 200
LONGEST_DESCRIPTION = 4_000
_TOLD = 5
_NAMED = 20


@dataclass(frozen=True, slots=True)
class Described:
    """What the tools are to be called: `description` is of the task, and used where the document has none."""

    tool_name: str
    description: str = ""
    operations: tuple[str, ...] = ()
    """Those that are wanted: their ids, tags, paths or `METHOD /path`, `*` for any letters; empty: all."""

    def groups(self, count: int) -> tuple[str, ...]:
        """Several tools are in one."""
        return (self.tool_name,) if count > 1 else ()

    def ids(self, names: Sequence[str]) -> list[str]:
        """The only one has the task's own name."""
        return [tool_id_of(self.tool_name, name) for name in names] if len(names) > 1 else [self.tool_name]

    def candidate(self, entries: Sequence[ToolEntry], otherwise: str = "", name: str = "") -> Candidate:
        """Of all of them; `otherwise` and `name` are for the group, where the task does not describe it."""
        if len(entries) == 1:
            return Candidate(entries=tuple(entries))
        group = ToolGroup(
            group_id=self.tool_name,
            name=(name or self.tool_name)[:LONGEST_NAME],
            description=(self.description or otherwise)[:LONGEST_DESCRIPTION],
            tool_ids=tuple(entry.manifest.tool_id for entry in entries),
        )
        return Candidate(entries=tuple(entries), group=group)


@dataclass(frozen=True, slots=True)
class Drafted:
    """Tools as data, and the operations that are none."""

    candidate: Candidate
    left_out: tuple[LeftOut, ...]


@dataclass(frozen=True, slots=True)
class _Tool:
    operation: Operation
    source: ToolSource
    input_schema: JsonSchema
    output_schema: JsonSchema


SourceOf = Callable[[Operation, RequestShape, str | None], ToolSource]
"""Of an operation, how it is called, and the path that tells whether the service works. Raises DocumentRefused."""


def draft(document: OpenApiDocument, about: Described, source_of: SourceOf) -> Drafted:
    """Raises BuildFailed. Blocks."""
    read = operations_of(document)
    asked, unasked = wanted(read, about.operations)
    chosen, beyond = fitting(asked, MOST_TOOLS, _listed_tags(document))
    if asked and not chosen:
        raise BuildFailed(_too_many(len(asked), beyond))
    left_out = [*beyond, *read.left_out, *unasked]
    tools: list[_Tool] = []
    for operation in chosen:
        try:
            tools.append(_tool(document, operation, read.health_path, source_of))
        except (DocumentRefused, ValidationError) as reason:
            left_out.append(LeftOut(operation.named, str(reason)))
        else:
            left_out += [LeftOut(operation.named, f"{said} It is a tool without that.") for said in operation.not_sent]
    if not tools:
        raise BuildFailed(_none(document, left_out))
    return Drafted(_candidate(document, about, tools), tuple(left_out))


def _listed_tags(document: OpenApiDocument) -> tuple[str, ...]:
    found = document.root.get("tags")
    return tuple(str(part(one).get("name")) for one in found) if isinstance(found, list) else ()


def _too_many(count: int, beyond: Sequence[LeftOut]) -> str:
    named = ", ".join(one.operation for one in beyond[:_NAMED])
    more = f" and {len(beyond) - _NAMED} more" if len(beyond) > _NAMED else ""
    return (
        f"{count} operations could be tools; at most {MOST_TOOLS} are made at once, and none of their tags fits into that. "
        f"Say in `operations` which are wanted (ids, tags, paths, `*` for any letters): {named}{more}."
    )


def _tool(document: OpenApiDocument, operation: Operation, health: str | None, source_of: SourceOf) -> _Tool:
    shape = request_shape(document, operation)
    schemas = Schemas(document)
    output = {} if operation.output is None else schemas.alone(schemas.converted(operation.output))
    source = source_of(operation, shape, health)
    return _Tool(operation, source, _usable(shape.schema, "input"), _usable(output, "output"))


def _usable(schema: JsonSchema, which: str) -> JsonSchema:
    """Raises DocumentRefused for one that the registry would not take."""
    for fault in schema_faults(schema):
        raise DocumentRefused(f"The schema of its {which} is none: {fault.path}: {fault.message}")
    try:
        return written_out(schema)
    except SchemaNotFollowedError as error:
        raise DocumentRefused(f"The schema of its {which} cannot be used: {error}") from error


def _candidate(document: OpenApiDocument, about: Described, tools: Sequence[_Tool]) -> Candidate:
    ids = about.ids(operation_names([tool.operation for tool in tools]))
    groups = about.groups(len(tools))
    entries = [_entry(tool, tool_id, document.title, about, groups) for tool, tool_id in zip(tools, ids, strict=True)]
    return about.candidate(entries, f"The operations of {document.title}.", document.title)


def _entry(tool: _Tool, tool_id: str, title: str, about: Described, groups: tuple[str, ...]) -> ToolEntry:
    operation = tool.operation
    reads = operation.method == "GET"
    said = "\n\n".join(dict.fromkeys(text for text in (operation.summary, operation.description) if text))
    if not groups and about.description:
        said = f"{about.description}\n\n{said}".strip()
    manifest = ToolManifest(
        tool_id=tool_id,
        name=(operation.summary or operation.operation_id or operation.named)[:LONGEST_NAME],
        description=(said or f"{operation.named} of {title}.")[:LONGEST_DESCRIPTION],
        backend_runtime=tool.source.traits.runtime,
        group_ids=groups,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        permission_class=PermissionClass.READ if reads else PermissionClass.EXTERNAL,
        side_effect_scope=SideEffectScope.NONE if reads else SideEffectScope.NETWORK,
    )
    return ToolEntry(manifest=manifest, sources=(_shared(tool.source, groups),))


def _shared(source: ToolSource, groups: tuple[str, ...]) -> ToolSource:
    """Operations of one service are in one process of it."""
    return source.model_copy(update={"process": groups[0]}) if groups and isinstance(source, PackedSource) else source


def _none(document: OpenApiDocument, left_out: Sequence[LeftOut]) -> str:
    told = "; ".join(map(str, left_out[:_TOLD]))
    return f"No operation of {document.title!r} can be a tool. {told or 'It has none.'}"
