"""Patterns of one language, in the order of matching, and the intent of each."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from toolagent_service.contracts.concierge import Intent


@dataclass(frozen=True, slots=True)
class Pattern:
    """The group `about`, if there is one, is the subject of the message; else the whole message is."""

    intent: Intent
    expression: re.Pattern[str]


def patterns(*rules: tuple[Intent, Sequence[str]]) -> tuple[Pattern, ...]:
    return tuple(Pattern(intent, re.compile(text, re.IGNORECASE)) for intent, texts in rules for text in texts)


def first_found(said: str, among: Iterable[Pattern]) -> tuple[Intent, str]:
    for pattern in among:
        if found := pattern.expression.search(said):
            return pattern.intent, found.groupdict().get("about") or ("" if "about" in found.groupdict() else said)
    return Intent.UNDECIDED, said
