"""What a message asks for, as far as its words say."""

from dataclasses import dataclass

from toolagent_service.contracts.concierge import Intent, Language


@dataclass(frozen=True, slots=True)
class Wish:
    """`about` is what it is about: a need, a tool, a task, a repository. Empty where nothing is named.

    `place` is that of a tool among those that were spoken of last, which a message refers to: 1 for `it` and for `the first one`, -1 for
    `the last one`; 0: it refers to none.
    """

    intent: Intent
    language: Language
    about: str = ""
    category: str | None = None
    place: int = 0
