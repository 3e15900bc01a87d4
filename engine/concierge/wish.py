"""What a message asks for, as far as its words say."""

from dataclasses import dataclass

from toolagent_service.contracts.concierge import Intent, Language


@dataclass(frozen=True, slots=True)
class Wish:
    """`about` is what it is about: a need, a tool, a task, a repository. Empty where nothing is named.

    `refers_back`: to a tool that was spoken of before, as `it` does.
    """

    intent: Intent
    language: Language
    about: str = ""
    category: str | None = None
    refers_back: bool = False
