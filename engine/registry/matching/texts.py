"""The searched texts of tools, and their traits for filters."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from pydantic import JsonValue

from engine.registry.matching.words import BREAK, cut
from toolagent.contracts.backend_runtimes import BackendRuntime
from toolagent.contracts.manifest import ToolManifest
from toolagent.core.catalog.namespaces import is_among

_BREAK = 0
"""The number of the separator between two places of a text."""


class Traits(NamedTuple):
    """The fields that filters and names need. Ten thousand manifests would take too much memory."""

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
    """Filters of a search; None: any value. An empty namespace means ids without one."""

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


class ToolText(NamedTuple):
    """The searched places of a tool."""

    tool_id: str
    name: str
    tags: str
    description: str
    params: str

    @property
    def summary(self) -> str:
        """The text without the parameters."""
        return f"{self.name} {self.tool_id.replace('_', ' ')} {self.description} {self.tags}"


class Numbers(dict[str, int]):
    """Numbers of pieces; a new piece gets the next number."""

    def __missing__(self, piece: str) -> int:
        number = self[piece] = len(self)
        return number


class Ends(NamedTuple):
    """Positions in the numbers of all texts: where a text begins and its places end. The summary is everything but the params."""

    begin: int
    name: int
    labels: int
    summary: int
    params: int


@dataclass(frozen=True, slots=True)
class CutTexts:
    """The texts of tools, cut into pieces. Words, glosses and vectors are made from it.

    Pieces are numbered: ten thousand tools have a third of a million pieces but few distinct ones, and each is processed once.
    """

    ids: list[str] = field(default_factory=list[str])
    pieces: Numbers = field(default_factory=lambda: Numbers({BREAK: _BREAK}))
    numbers: list[int] = field(default_factory=list[int])
    ends: list[Ends] = field(default_factory=list[Ends])

    def add(self, text: ToolText) -> None:
        begin = len(self.numbers)
        # All places at once: cutting four times as many short texts takes a fifth longer.
        places = BREAK.join((text.name, f"{text.tool_id} {text.tags}", text.description, text.params))
        self.numbers.extend(map(self.pieces.__getitem__, cut(places)))
        name = self.numbers.index(_BREAK, begin)
        labels = self.numbers.index(_BREAK, name + 1)
        summary = self.numbers.index(_BREAK, labels + 1)
        self.ids.append(text.tool_id)
        self.ends.append(Ends(begin, name, labels, summary, len(self.numbers)))


def cut_texts_of(tools: Iterable[ToolManifest]) -> CutTexts:
    texts = CutTexts()
    for tool in tools:
        texts.add(text_of(tool))
    return texts


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
