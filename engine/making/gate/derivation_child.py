"""The program that derives cases.

Reads a JSON object from stdin; writes a line for each case: the number of its schema, and the case.
"""

import ctypes
import importlib
import json
import math
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import cast

from hypothesis import HealthCheck, Phase, given, seed, settings, strategies
from hypothesis.internal import charmap
from hypothesis.internal.conjecture.utils import many
from hypothesis.internal.intervalsets import IntervalSet
from hypothesis_jsonschema import from_schema  # pyright: ignore[reportUnknownVariableType] - its JSON type is recursive

_PR_SET_PDEATHSIG = 1
_MEMORY = 2 * 1024**3
_MOST = 2**53 - 1
"""The largest integer that every JSON reader can hold (RFC 7493). Larger ones test number formats, not tools."""
_DIGITS = 6
_ALL = cast("list[HealthCheck]", list(HealthCheck))
_from_schema = cast("Callable[..., strategies.SearchStrategy[object]]", from_schema)
_MORE = frozenset({"$ref", "additionalProperties", "allOf", "anyOf", "oneOf", "patternProperties", "unevaluatedProperties"})
"""A schema with one of these keywords decides itself what is allowed besides its properties."""
_CASE_BYTES = 64 * 1024


def main() -> None:
    """The request has `schemas`, each with its `seed`, and `count` and `seconds` for each schema.

    The argument is the id of the parent process: this process ends when the parent does.
    """
    _end_with(int(sys.argv[1]))
    own = os.getpid()
    request = cast("dict[str, object]", json.load(sys.stdin))
    _provide_older_collections()
    charmap.intervals_from_codec = _known_codec
    seconds = math.ceil(cast("float", request["seconds"]))
    for number, asked in enumerate(cast("list[dict[str, object]]", request["schemas"])):
        # Each schema has its own process, so that one that never ends, or takes all memory, does not affect the others.
        if (pid := os.fork()) == 0:
            _end_with(own)
            _limit(seconds)
            _derive(number, _object(asked["schema"]), asked["seed"], cast("int", request["count"]))
            sys.stdout.flush()
            os._exit(0)
        os.waitpid(pid, 0)


def _end_with(parent: int) -> None:
    """Has the kernel end this process with its parent. Needed again after each fork."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL) or os.getppid() != parent:
        os._exit(1)


def _limit(seconds: int) -> None:
    signal.alarm(seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))


def _derive(number: int, schema: dict[str, object], start: object, count: int) -> None:
    written: set[str] = set()

    @seed(start)
    @settings(max_examples=count, phases=[Phase.generate], database=None, deadline=None, suppress_health_check=_ALL)
    @given(_from_schema(schema, custom_formats={"uuid": strategies.uuids().map(str)}, allow_x00=False))
    def write(case: object) -> None:
        text = json.dumps(_calm(case), sort_keys=True)
        if text not in written and len(text) <= _CASE_BYTES:
            written.add(text)
            sys.stdout.write(f"{number} {text}\n")
            sys.stdout.flush()

    write()


class _Asked(many):
    """Adds the method `more` that hypothesis-jsonschema 0.23 calls; Hypothesis now iterates over collections in a block.

    A loop that ends early leaves spans open, which the engine closes.
    """

    _elements: Iterator[None] | None = None

    def more(self) -> bool:
        if self._elements is None:
            self.__enter__()
            self._elements = iter(self)
        if any(True for _ in self._elements):
            return True
        self.__exit__(None)
        return False


def _provide_older_collections() -> None:
    """Gives hypothesis-jsonschema the older collections, if Hypothesis lacks them."""
    if not hasattr(many, "more"):
        vars(importlib.import_module(from_schema.__module__))["cu"] = SimpleNamespace(many=_Asked)


def _known_codec(_name: str) -> tuple[IntervalSet, IntervalSet]:
    """The characters of UTF-8, the only codec. The library would try each character, for many seconds."""
    return IntervalSet(((0, 0xD7FF), (0xE000, sys.maxunicode))), IntervalSet(())


def _object(schema: object) -> dict[str, object]:
    """The schema as one of an object with only the named properties, without a dialect, which the library may not know."""
    known = {name: value for name, value in cast("dict[str, object]", schema).items() if name != "$schema"}
    if not known.keys() & {"type", "$ref"}:
        known["type"] = "object"
    if "properties" in known and not known.keys() & _MORE:
        known["additionalProperties"] = False
    return known


def _calm(value: object) -> object:
    """The value without extreme numbers."""
    match value:
        case bool():
            return value
        case int():
            return max(-_MOST, min(_MOST, value))
        case float():
            return _rounded(value)
        case list():
            return [_calm(item) for item in cast("list[object]", value)]
        case dict():
            return {name: _calm(item) for name, item in cast("dict[str, object]", value).items()}
        case _:
            return value


def _rounded(value: float) -> float:
    rounded = round(max(-float(_MOST), min(float(_MOST), value)), _DIGITS)
    return rounded + 0.0  # no negative zero


if __name__ == "__main__":
    main()
