"""From a message to what it asks for. No rule reads anything but the message."""

import re

from engine.concierge import chinese, english
from engine.concierge.wish import Wish
from toolagent_service.contracts.concierge import Intent, Language

_MOST_READ = 2_000
"""Characters: what somebody wants stands at the beginning."""

_HAN = re.compile(r"[\u3400-\u9fff]")
_TASK = re.compile(r"(?<![A-Za-z0-9_-])(?:(?:create|repair)_[0-9a-f]{8}|(?:call|batch)-[A-Za-z0-9_-]{8,80})(?![A-Za-z0-9_-])")
_REPOSITORY = re.compile(
    r"(?:https?://|ssh://|git@)[^\s,。;、)\"'<>]+\.git\b|(?:https?://)?(?:www\.)?(?:github\.com|gitlab\.com|gitee\.com|bitbucket\.org)/[\w.~/-]+[\w~]"
)

_ID = re.compile(r"(?<![A-Za-z0-9_-])[a-z][a-z0-9-]*[_:][a-z0-9_:-]*[a-z0-9]")
"""Of a tool or a group; other ids look like words."""


def recognised(message: str) -> Wish:
    said = " ".join(message[:_MOST_READ].split())
    language: Language = "zh" if _HAN.search(said) else "en"
    spoken = chinese if language == "zh" else english
    if task := _TASK.search(said):
        return Wish(Intent.STATUS, language, task[0])
    if (repository := _REPOSITORY.search(said)) and spoken.DEPLOYS.search(said):
        return Wish(Intent.MAKE, language, repository[0])
    intent, about = _by_patterns(said, spoken.PATTERNS)
    if intent is Intent.UNDECIDED and _ID.search(said):
        intent = Intent.DETAILS
    if intent is Intent.MAKE:
        about = spoken.what_is_made(about)
    elif intent is not Intent.DISCOVER:
        named = _ID.search(said)
        about = named[0] if named else spoken.plain(about)
    category = spoken.CATEGORY.search(said) if intent is Intent.DISCOVER else None
    return Wish(intent, language, about, _part(category) if category else None)


def repository_in(about: str) -> str | None:
    """The address of a repository, if that is what a wish is about."""
    found = _REPOSITORY.fullmatch(about)
    return None if found is None else about if "://" in about or about.startswith("git@") else f"https://{about}"


def _by_patterns(said: str, patterns: tuple[tuple[Intent, re.Pattern[str]], ...]) -> tuple[Intent, str]:
    for intent, pattern in patterns:
        if found := pattern.search(said):
            return intent, _part(found) if found.groupdict() else said
    return Intent.UNDECIDED, said


def _part(found: re.Match[str]) -> str:
    return next((part for part in found.groupdict().values() if part is not None), found.string)
