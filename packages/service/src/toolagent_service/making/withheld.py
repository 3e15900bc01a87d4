"""Which examples of a task are withheld from the maker of the tool, so that they are a real test."""

import hashlib
import json
from collections.abc import Sequence

from toolagent.contracts.task_specs import Example


def divided(task_id: str, examples: Sequence[Example]) -> tuple[tuple[Example, ...], tuple[Example, ...]]:
    """The shown and the withheld examples, each in the given order."""
    places = withheld(task_id, examples)
    shown = tuple(example for place, example in enumerate(examples) if place not in places)
    return shown, tuple(example for place, example in enumerate(examples) if place in places)


def withheld(task_id: str, examples: Sequence[Example]) -> frozenset[int]:
    """The positions of withheld examples: at least one and at least a third, never all; none of fewer than two.

    Always the same for a task. Examples with the same input stay together, because showing one reveals the answer.
    """
    by_input: dict[str, list[int]] = {}
    for place, example in enumerate(examples):
        by_input.setdefault(json.dumps(example.input, sort_keys=True, ensure_ascii=False), []).append(place)
    if len(by_input) < 2:
        return frozenset()
    wanted = -(-len(examples) // 3)
    taken: list[int] = []
    *others, last = sorted(by_input, key=lambda text: hashlib.sha256(f"{task_id}\n{text}".encode()).digest())
    for text in others:
        taken += by_input[text]
        if len(taken) >= wanted:
            return frozenset(taken)
    # All others together are less than a third, so the last has more than two thirds.
    return frozenset(by_input[last])
