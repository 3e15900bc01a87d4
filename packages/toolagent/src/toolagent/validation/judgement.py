"""Estimates the cost of checking values against a schema.

A look is the application of one part of the schema to one place of a value. Parts that look at the same value and recurse into it
multiply the looks at every level; so do references that `anyOf` chains without recursion. A regular expression on a text, or the
comparison of a value with a long list, costs more than one look.
"""

import heapq
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, count

from pydantic import JsonValue

from toolagent.contracts.calls import ValidationIssue
from toolagent.contracts.contract import JsonSchema
from toolagent.validation.schema_graph import Fork, Item, Label, Name, Part, Unresolved, inside, may_meet, meet, parts_of, same

__all__ = ["MOST_PATTERNS", "Judgement", "judged", "pattern_size"]

MOST_PATTERNS = 100_000
"""The size of regular expressions, with repetitions written out, that compile in milliseconds."""

_REFUSED = 50_000
"""Looks at one place. Two recursive branches reach this number in sixteen levels."""

_REFUSED_AT_ONCE = 2_000
"""Looks at one place without descending into the value."""

_MANY = 1_000
_DEPTH = 256
_STEPS = 2_000
_WORK = 50_000
"""Pairs of edges that are compared, in a tenth of a second."""

_FOLLOWED_PARTS = 5_000
_SEARCHED_PARTS = 200_000
_MOST_FACTS = 20
_UNBOUNDED = re.compile(r"\(\?(?:[=!>]|<[=!])|\\[1-9kg]|[*+?}]\+")
"""The parts of regular expressions that need backtracking."""

_BACKTRACKING = 40_000
_DIGITS = 6
_REPEATED = re.compile(r"\{(\d+)(?:,(\d*))?\}")


@dataclass(frozen=True, slots=True)
class Judgement:
    """`cost`: the most looks at each place of a value; None if it grows with the depth of values, or is unknown.

    `faults`: why a tool with this schema is refused.
    """

    cost: int | None
    faults: tuple[ValidationIssue, ...] = ()


def judged(schema: JsonSchema) -> Judgement:
    """Judges a valid schema."""
    if pattern_size(schema) > MOST_PATTERNS or _is_large(schema):
        return Judgement(None)
    try:
        each = max(map(_own_cost, parts_of(schema)), default=1)
        looks = _bound(schema)
        if looks is not None:
            return Judgement(looks * each)
        looks = _Walk(schema, is_sure=False, most=_MANY).looks()
        if isinstance(looks, int):
            return Judgement(looks * each)
        sure = _Walk(schema, is_sure=True, most=_REFUSED).looks()
    except (Unresolved, RecursionError):
        return Judgement(None)
    return Judgement(None, (_fault(sure),) if isinstance(sure, Part) else ())


def _fault(part: Part) -> ValidationIssue:
    message = (
        f"One value may be checked here in more than {_REFUSED_AT_ONCE} ways, which takes time without end: branches of one value "
        "(anyOf, oneOf, allOf, if …) lead back here more than once, level by level. Refer to it in one branch only, or let the branches "
        "exclude each other (another `type`, or a property with another `const`, in each)."
    )
    return ValidationIssue(path=part.path, message=message, keyword="$ref")


def _is_large(schema: JsonSchema) -> bool:
    """Whether following the references would take long itself."""
    references = [part.get(word) for part in parts_of(schema) for word in ("$ref", "$dynamicRef") if word in part]
    searched = sum(not str(reference).startswith("#/") for reference in references)
    count = sum(1 for _ in parts_of(schema))
    return bool(references) and (count > _FOLLOWED_PARTS or searched * count > _SEARCHED_PARTS)


class _Cyclic(Exception):
    """A part leads to itself."""


def _bound(root: JsonSchema) -> int | None:
    """A quick upper bound of the looks at one place; None if a part leads to itself, or for many looks."""
    known: dict[int, tuple[int, int] | None] = {}

    def of(part: Part) -> tuple[int, int]:
        """Looks at the value itself, and at any place in it."""
        key = id(part.schema)
        if key in known:
            if (found := known[key]) is None:
                raise _Cyclic
            return found
        known[key] = None
        here, below = 1, 0
        for inner, _ in same(root, part):
            own, deeper = of(inner)
            here, below = here + own, below + deeper
        apart, together = 0, 0
        for label, inner in inside(part):
            looks = max(of(inner))
            if isinstance(label, Name | Item):
                apart = max(apart, looks)
            else:
                together += looks
        known[key] = (here, below + apart + together)
        return here, below + apart + together

    try:
        looks = max(of(Part(root, "$")))
    except _Cyclic:
        return None
    return looks if looks <= _MANY else None


@dataclass(frozen=True, slots=True)
class _Edge:
    label: Label
    target: Part
    forks: tuple[Fork, ...]
    times: int = 1


@dataclass(frozen=True, slots=True)
class _Place:
    """A part, together with all parts that look at the same value."""

    looks: int
    edges: tuple[_Edge, ...]


class _Exhausted(Exception):
    """The walk takes too long."""


class _TooMany(Exception):
    def __init__(self, part: Part) -> None:
        self.part = part


@dataclass
class _Walk:
    """Walks along all possible values at once, the most expensive first. `is_sure`: counts only looks that surely coincide."""

    root: JsonSchema
    is_sure: bool
    most: int
    _places: dict[int, _Place] = field(default_factory=dict[int, _Place])
    _facts: dict[int, Mapping[str, frozenset[str]]] = field(default_factory=dict[int, Mapping[str, frozenset[str]]])
    _work: int = 0

    def looks(self) -> int | Part | None:
        """The most looks at a place; or the part with more than `most` looks; None if the walk does not find out."""
        order = count()
        begin = {id(self.root): (Part(self.root, "$"), 1)}
        waiting = [(-1, next(order), 0, begin)]
        seen: set[frozenset[tuple[int, int]]] = set()
        dearest = 1
        try:
            while waiting:
                _, _, depth, parts = heapq.heappop(waiting)
                looks = {key: times * self._place(part).looks for key, (part, times) in parts.items()}
                dearest = max(dearest, sum(looks.values()))
                if dearest > self.most:
                    return min(parts.values(), key=lambda found: (-looks[id(found[0].schema)], found[0].path))[0]
                if depth >= _DEPTH or len(seen) >= _STEPS:
                    return None
                for following in self._following(parts):
                    key = frozenset((part, times) for part, (_, times) in following.items())
                    if key not in seen:
                        seen.add(key)
                        heapq.heappush(waiting, (-sum(times for _, times in following.values()), next(order), depth + 1, following))
        except _TooMany as many:
            return many.part
        except _Exhausted:
            return None
        return dearest

    def _following(self, parts: Mapping[int, tuple[Part, int]]) -> Iterator[dict[int, tuple[Part, int]]]:
        """For every kind of place inside, the parts that look at it."""
        named: dict[Label, list[_Edge]] = defaultdict(list)
        others: list[_Edge] = []
        for part, times in parts.values():
            for edge in self._place(part).edges:
                told = _Edge(edge.label, edge.target, edge.forks, edge.times * times)
                (named[edge.label] if isinstance(edge.label, Name) else others).append(told)
        self._spend((len(named) + len(others)) * len(others))
        for label, edges in named.items():
            yield from self._together([*edges, *(other for other in others if self._meet(label, other.label))])
        for label in dict.fromkeys(other.label for other in others):
            yield from self._together([other for other in others if self._meet(label, other.label)])

    def _together(self, edges: Sequence[_Edge]) -> Iterator[dict[int, tuple[Part, int]]]:
        if not self.is_sure:
            self._spend(len(edges))
            yield _summed(edges)
            return
        # A bit for each edge that one value can follow too. Every pair is compared once: what is spent is the work that is done.
        self._spend(len(edges) ** 2 // 2)
        fitting = [0] * len(edges)
        for (first, one), (second, other) in combinations(enumerate(edges), 2):
            if meet(one.label, other.label) and self._coexist(one, other):
                fitting[first] |= 1 << second
                fitting[second] |= 1 << first
        for edge, left in zip(edges, fitting, strict=True):
            chosen = [edge]
            while left:
                place = (left & -left).bit_length() - 1
                chosen.append(edges[place])
                left &= fitting[place]
            yield _summed(chosen)

    def _coexist(self, one: _Edge, other: _Edge) -> bool:
        """Whether one value can follow both edges."""
        branches = {fork.choice: fork for fork in one.forks}
        pairs = ((branches[fork.choice], fork) for fork in other.forks if fork.choice in branches)
        return not any(mine.index != its.index and self._exclude(mine.branch, its.branch) for mine, its in pairs)

    def _exclude(self, one: JsonValue, other: JsonValue) -> bool:
        mine, its = self._facts_of(one), self._facts_of(other)
        return any(not mine[name] & its[name] for name in mine.keys() & its.keys())

    def _facts_of(self, branch: JsonValue) -> Mapping[str, frozenset[str]]:
        if id(branch) not in self._facts:
            self._facts[id(branch)] = _facts(self.root, branch)
        return self._facts[id(branch)]

    def _spend(self, work: int) -> None:
        self._work += work
        if self._work > _WORK:
            raise _Exhausted

    def _meet(self, one: Label, other: Label) -> bool:
        return meet(one, other) if self.is_sure else may_meet(one, other)

    def _place(self, part: Part) -> _Place:
        found = self._places.get(id(part.schema))
        if found is None:
            edges: list[_Edge] = []
            looks = 0
            for inner, forks in self._at_once(part, (), ()):
                looks += 1
                if looks > min(self.most, _REFUSED_AT_ONCE):
                    raise _TooMany(part)
                edges += (_Edge(label, target, forks) for label, target in inside(inner))
            found = self._places[id(part.schema)] = _Place(looks, tuple(_with_one_target_a_reference(edges)))
        return found

    def _at_once(self, part: Part, within: tuple[int, ...], forks: tuple[Fork, ...]) -> Iterator[tuple[Part, tuple[Fork, ...]]]:
        """All parts that look at the same value, with repetitions. Like the library, leaves out a part that leads to itself."""
        if id(part.schema) in within:
            return
        yield part, forks
        for inner, fork in same(self.root, part):
            yield from self._at_once(inner, (*within, id(part.schema)), (*forks, fork) if fork else forks)


def _with_one_target_a_reference(edges: Sequence[_Edge]) -> Iterator[_Edge]:
    """Targets that hold only the same reference become one, so that the walk does not go on from each."""
    plain = [edge.target for edge in edges if edge.target.schema.keys() == {"$ref"}]
    targets = {str(target.schema["$ref"]): target for target in sorted(plain, key=lambda target: target.path, reverse=True)}
    for edge in edges:
        is_plain = edge.target.schema.keys() == {"$ref"}
        yield replace(edge, target=targets[str(edge.target.schema["$ref"])]) if is_plain else edge


def _summed(edges: Sequence[_Edge]) -> dict[int, tuple[Part, int]]:
    parts: dict[int, tuple[Part, int]] = {}
    for edge in edges:
        _, times = parts.get(id(edge.target.schema), (edge.target, 0))
        parts[id(edge.target.schema)] = (edge.target, times + edge.times)
    return parts


def _facts(root: JsonSchema, branch: JsonValue) -> Mapping[str, frozenset[str]]:
    """The allowed types and constant values of a branch, by path."""
    facts: dict[str, frozenset[str]] = {}
    if not isinstance(branch, dict):
        return facts
    waiting = [Part(branch, "$")]
    for _ in range(_MOST_FACTS):
        if not waiting:
            break
        part = waiting.pop()
        own = {"": part.schema, **{f".{label.name}": inner.schema for label, inner in inside(part) if isinstance(label, Name)}}
        for name, schema in own.items():
            for kind, allowed in _allowed(schema):
                facts[f"{kind}{name}"] = facts.get(f"{kind}{name}", allowed) & allowed
        waiting += (inner for inner, fork in same(root, part) if fork is None and not part.path.endswith((".not", ".if")))
    return facts


def _allowed(schema: JsonSchema) -> Iterator[tuple[str, frozenset[str]]]:
    types = schema.get("type")
    if isinstance(types, str | list):
        names = {types} if isinstance(types, str) else {str(name) for name in types}
        yield "type", frozenset(names | ({"integer"} if "number" in names else set()))
    if "const" in schema:
        yield "value", frozenset({repr(schema["const"])})
    elif isinstance(values := schema.get("enum"), list):
        yield "value", frozenset(map(repr, values))


def pattern_size(schema: JsonSchema) -> int:
    """The size of all regular expressions in a schema, with repetitions written out."""
    return sum(_size(text) for part in parts_of(schema) for text in _patterns(part))


def _own_cost(schema: JsonSchema) -> int:
    """The cost of a part itself, in looks: for lists that are walked for each value, and regular expressions."""
    lengths = [_length(schema.get(word)) for word in ("required", "properties", "dependentRequired", "dependentSchemas")]
    values = schema.get("enum")
    compared = sum(not isinstance(value, str) for value in values) if isinstance(values, list) else 0
    patterns = sum(_BACKTRACKING if _UNBOUNDED.search(text) else _size(text) // 256 for text in _patterns(schema))
    return 1 + sum(lengths) // 64 + compared // 8 + patterns + _length(schema.get("patternProperties")) // 8


def _patterns(schema: JsonSchema) -> Iterator[str]:
    patterns = schema.get("patternProperties")
    yield from patterns if isinstance(patterns, dict) else ()
    if isinstance(pattern := schema.get("pattern"), str):
        yield pattern


def _length(value: JsonValue) -> int:
    return len(value) if isinstance(value, dict | list) else 0


def _size(pattern: str) -> int:
    size = len(pattern)
    for least, most in _REPEATED.findall(pattern):
        times = most or least
        size = min(size * max(int(times) if len(times) < _DIGITS else _REFUSED, 1), _REFUSED**2)
    return size
