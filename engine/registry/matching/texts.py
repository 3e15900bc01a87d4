"""What of a tool is searched, and what of it is asked by filters."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pydantic import JsonValue

from engine.registry.matching.words import cut
from toolagent.contracts.backend_runtimes import BackendRuntime
from toolagent.contracts.manifest import ToolManifest
from toolagent.core.catalog.namespaces import is_among


class Traits(NamedTuple):
    """What filters and names ask of a tool: ten thousand manifests would take most of the memory."""

    tool_id: str
    name: str
    category: str
    backend: BackendRuntime
    tags: tuple[str, ...]
    group_ids: tuple[str, ...]

    @property
    def called(self) -> str:
        return self.name.strip().lower()


@dataclass(frozen=True, slots=True)
class Filters:
    """What a tool has to be; None: anything. An empty namespace means the ids without one."""

    category: str | None = None
    backend: BackendRuntime | None = None
    tag: str | None = None
    group: str | None = None
    namespace: str | None = None

    def __bool__(self) -> bool:
        return self != Filters()

    def admit(self, tool: Traits) -> bool:
        return (
            self.category in {None, tool.category}
            and self.backend in {None, tool.backend}
            and (self.group is None or self.group in tool.group_ids)
            and is_among(tool, self.namespace, self.tag)
        )


@dataclass(frozen=True, slots=True)
class ToolText:
    """The places in which words of a need may occur."""

    tool_id: str
    name: str
    tags: str
    description: str
    params: str

    @property
    def summary(self) -> str:
        """What it does, without its params."""
        return f"{self.name} {self.tool_id.replace('_', ' ')} {self.description} {self.tags}"


class CutText(NamedTuple):
    """The same, cut: of this the words, the glosses and the vectors are made."""

    tool_id: str
    name: list[str]
    labels: list[str]
    description: list[str]
    params: list[str]
    summary: list[str]


def cut_text_of(tool: ToolManifest) -> CutText:
    text = text_of(tool)
    name, labels, description = cut(text.name), cut(f"{text.tool_id} {text.tags}"), cut(text.description)
    return CutText(text.tool_id, name, labels, description, cut(text.params), [*name, *labels, *description])


def traits_of(tool: ToolManifest) -> Traits:
    return Traits(tool.tool_id, tool.name, tool.category, tool.backend_runtime, tool.tags, tool.group_ids)


def text_of(tool: ToolManifest) -> ToolText:
    params = " ".join(_described(tool.input_schema))
    examples = " ".join(example.description for example in tool.examples)
    return ToolText(tool.tool_id, tool.name, " ".join((*tool.tags, tool.category)), tool.description, f"{params} {examples}")


def _described(schema: JsonValue) -> Iterator[str]:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    for name, known in properties.items() if isinstance(properties, dict) else ():
        yield name
        if isinstance(known, dict) and isinstance(said := known.get("description"), str):
            yield said
