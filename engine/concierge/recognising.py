"""Recognises what a message asks for, from the message alone."""

import re
from dataclasses import dataclass

from engine.concierge import chinese, english
from engine.concierge.patterns import first_found
from toolagent_service.contracts.concierge import Intent, Language

_MOST_READ = 500
"""Characters: a wish stands at the beginning of a message."""

_HAN = re.compile(r"[\u3400-\u9fff]")
_TASK = re.compile(r"(?<![A-Za-z0-9_-])(?:(?:create|repair)_[0-9a-f]{8}|(?:call|batch)-[A-Za-z0-9_-]{8,80})(?![A-Za-z0-9_-])")
_FORGES = r"(?:github\.com|gitlab\.com|gitee\.com|bitbucket\.org)"
_REPOSITORY = re.compile(rf"(?:https?://|ssh://|git@)[^\s,。;、)\"'<>]+\.git\b|(?:https?://)?(?:www\.)?{_FORGES}/[\w.~/-]+[\w~]")
_ID = re.compile(r"(?<![A-Za-z0-9_-])[a-z][a-z0-9-]*[_:][a-z0-9_:-]*[a-z0-9]")
"""The id of a tool or a group; other ids look like words."""

_AROUND = re.compile(r"^[\s\W]+|[\s\W]+$")


@dataclass(frozen=True, slots=True)
class Wish:
    """`about` is the subject: a need, a tool, a task or a repository; empty if none is named.

    `place` refers to a tool of the last reply: 1 is `it` or `the first one`, -1 `the last one`, 0 none.
    """

    intent: Intent
    language: Language
    about: str = ""
    category: str | None = None
    place: int = 0


def recognised(message: str) -> Wish:
    said = " ".join(message[:_MOST_READ].split())
    language: Language = "zh" if _HAN.search(said) else "en"
    if task := _TASK.search(said):
        return Wish(Intent.STATUS, language, task[0])
    return _referring(_AROUND.sub("", said), language) or _wished(said, language)


def repository_in(about: str) -> str | None:
    """The URL of the repository, if the subject is one."""
    found = _REPOSITORY.fullmatch(about)
    return None if found is None else about if "://" in about or about.startswith("git@") else f"https://{about}"


def _referring(whole: str, language: Language) -> Wish | None:
    """The wish of a message that only agrees, or only names a place."""
    spoken = chinese if language == "zh" else english
    if spoken.AGREES.fullmatch(whole):
        return Wish(Intent.AGREE, language)
    place = spoken.place_in(whole)
    return Wish(Intent.DETAILS, language, place=place) if place else None


def _wished(said: str, language: Language) -> Wish:
    spoken = chinese if language == "zh" else english
    asked = spoken.QUESTION.search(said) and not spoken.ASKS.search(said)
    if (repository := _REPOSITORY.search(said)) and spoken.DEPLOYS.search(said):
        is_wished = not asked and not spoken.DECLINES.search(said)
        return Wish(Intent.MAKE, language, repository[0]) if is_wished else Wish(Intent.UNDECIDED, language)
    intent, about = first_found(said, spoken.PATTERNS)
    if asked and intent in {Intent.MAKE, Intent.REPAIR}:
        intent, about = Intent.UNDECIDED, ""
    about, named = _AROUND.sub("", about), _ID.search(said)
    match intent:
        case Intent.MAKE:
            return Wish(intent, language, spoken.what_is_made(about))
        case Intent.DISCOVER:
            category = spoken.CATEGORY.search(said)
            return Wish(intent, language, about, category["category"] if category else None)
        case Intent.UNDECIDED if named and about:
            return Wish(Intent.DETAILS, language, named[0])
        case _ if named:
            return Wish(intent, language, named[0])
        case _:
            plain = spoken.plain(about)
            return Wish(intent, language, plain, place=spoken.place_in(about) or int(spoken.REFERS_BACK.fullmatch(plain) is not None))
