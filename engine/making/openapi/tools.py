"""Makes tools from an OpenAPI document: one for each selected operation; several form a group."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from engine.making.failures import BuildFailed, LeftOut
from engine.making.json_values import items, part
from engine.making.openapi.documents.document import DocumentRefused, OpenApiDocument
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
    """The task's words: names for the tools, and a `description` for use if the document has none."""

    tool_name: str
    description: str = ""
    operations: tuple[str, ...] = ()
    """Patterns of ids, tags, paths or `METHOD /path`, with `*` for any letters; empty: all."""

    def groups(self, count: int) -> tuple[str, ...]:
        """The group of several tools."""
        return (self.tool_name,) if count > 1 else ()

    def ids(self, names: Sequence[str]) -> list[str]:
        """Tool ids; a single tool has the task's own name."""
        return [tool_id_of(self.tool_name, name) for name in names] if len(names) > 1 else [self.tool_name]

    def candidate(self, entries: Sequence[ToolEntry], otherwise: str = "", name: str = "") -> Candidate:
        """A candidate; `otherwise` and `name` describe the group if the task does not."""
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
    """Tools as data, and the operations that are left out."""

    candidate: Candidate
    left_out: tuple[LeftOut, ...]


SourceOf = Callable[[Operation, RequestShape, str | None], ToolSource]
"""Makes the source for an operation, its request and the health path. Raises DocumentRefused."""


def draft(document: OpenApiDocument, about: Described, source_of: SourceOf) -> Drafted:
    """Raises BuildFailed. Blocks."""
    read = operations_of(document)
    asked, unasked = wanted(read, about.operations)
    chosen, beyond = fitting(asked, MOST_TOOLS, [str(part(one).get("name")) for one in items(document.root.get("tags"))])
    if asked and not chosen:
        raise BuildFailed(_too_many(len(asked), beyond))
    left_out = [*beyond, *read.left_out, *unasked]
    made: list[tuple[Operation, ToolSource, JsonSchema, JsonSchema]] = []
    for operation in chosen:
        try:
            shape, schemas = request_shape(document, operation), Schemas(document, "writeOnly")
            output = {} if operation.output is None else schemas.alone(schemas.converted(operation.output))
            source = source_of(operation, shape, read.health_path)
            made.append((operation, source, _usable(shape.schema, "input"), _usable(output, "output")))
        except (DocumentRefused, ValidationError) as reason:
            left_out.append(LeftOut(operation.named, str(reason)))
        else:
            left_out += [LeftOut(operation.named, f"{said} It is a tool without that.") for said in operation.not_sent]
    if not made:
        told = "; ".join(map(str, left_out[:_TOLD])) or "It has none."
        raise BuildFailed(f"No operation of {document.title!r} can be a tool. {told}")
    ids, groups = about.ids(operation_names([one[0] for one in made])), about.groups(len(made))
    entries = [_entry(*one, tool_id, document.title, about, groups) for one, tool_id in zip(made, ids, strict=True)]
    return Drafted(about.candidate(entries, f"The operations of {document.title}.", document.title), tuple(left_out))


def _too_many(count: int, beyond: Sequence[LeftOut]) -> str:
    named = ", ".join(one.operation for one in beyond[:_NAMED])
    more = f" and {len(beyond) - _NAMED} more" if len(beyond) > _NAMED else ""
    return (
        f"{count} operations could be tools; at most {MOST_TOOLS} are made at once, and none of their tags fits into that. "
        f"Say in `operations` which are wanted (ids, tags, paths, `*` for any letters): {named}{more}."
    )


def _usable(schema: JsonSchema, which: str) -> JsonSchema:
    """Raises DocumentRefused if the registry would refuse the schema."""
    for fault in schema_faults(schema):
        raise DocumentRefused(f"The schema of its {which} is none: {fault.path}: {fault.message}")
    try:
        return written_out(schema)
    except SchemaNotFollowedError as error:
        raise DocumentRefused(f"The schema of its {which} cannot be used: {error}") from error


def _entry(
    operation: Operation,
    source: ToolSource,
    input_schema: JsonSchema,
    output_schema: JsonSchema,
    tool_id: str,
    title: str,
    about: Described,
    groups: tuple[str, ...],
) -> ToolEntry:
    if groups and isinstance(source, PackedSource):
        # The operations of a service share a process.
        source = source.model_copy(update={"process": groups[0]})
    reads = operation.method == "GET"
    said = "\n\n".join(dict.fromkeys(filter(None, (operation.summary, operation.description))))
    if not groups and about.description:
        said = f"{about.description}\n\n{said}".strip()
    manifest = ToolManifest(
        tool_id=tool_id,
        name=(operation.summary or operation.operation_id or operation.named)[:LONGEST_NAME],
        description=(said or f"{operation.named} of {title}.")[:LONGEST_DESCRIPTION],
        backend_runtime=source.traits.runtime,
        group_ids=groups,
        input_schema=input_schema,
        output_schema=output_schema,
        permission_class=PermissionClass.READ if reads else PermissionClass.EXTERNAL,
        side_effect_scope=SideEffectScope.NONE if reads else SideEffectScope.NETWORK,
    )
    return ToolEntry(manifest=manifest, sources=(source,))
