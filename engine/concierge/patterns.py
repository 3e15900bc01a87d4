"""Rules of one language: patterns in the order of asking, and what each says of a message."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from toolagent_service.contracts.concierge import Intent


@dataclass(frozen=True, slots=True)
class Pattern:
    """The group `about`, where there is one, is what the message is about; else all of it is."""

    intent: Intent
    expression: re.Pattern[str]


def patterns(*rules: tuple[Intent, Sequence[str]]) -> tuple[Pattern, ...]:
    return tuple(Pattern(intent, re.compile(text, re.IGNORECASE)) for intent, texts in rules for text in texts)


def first_found(said: str, among: Iterable[Pattern]) -> tuple[Intent, str]:
    for pattern in among:
        if found := pattern.expression.search(said):
            return pattern.intent, found.groupdict().get("about") or ("" if "about" in found.groupdict() else said)
    return Intent.UNDECIDED, said
