"""What a message asks for, as far as its words say."""

from dataclasses import dataclass

from toolagent_service.contracts.concierge import Intent, Language


@dataclass(frozen=True, slots=True)
class Wish:
    """`about` is what it is about: a need, a tool, a task, a repository. Empty where nothing is named."""

    intent: Intent
    language: Language
    about: str = ""
    category: str | None = None
