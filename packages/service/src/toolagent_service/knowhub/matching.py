"""Matches tools with KnowHub's resources by these rules, each with a score:

1. The id or the name of the tool contains the slug or the title of the resource: 0.7.
2. Its description contains the slug or the title: 0.4; of the words of the resource's description: up to 0.4.
3. Both are of the same category: 0.2.

So neither a category nor a few common words are enough for a link. Existing links of either side are certain.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

from toolagent.contracts.knowhub import KnowHubLink
from toolagent.contracts.manifest import ToolManifest
from toolagent_service.knowhub.resources import Resource

LEAST = 0.5
"""The least score of a link."""

_NAMED, _MENTIONED, _WORDS, _CATEGORY = 0.7, 0.4, 0.4, 0.2
_FEWEST_WORDS = 3
"""The fewest words for which a description is compared."""
_SHORTEST = 3
"""The fewest characters of a slug or a title; Chinese ones count twice."""

_RUN = re.compile(r"[a-z0-9]+|[\u3400-\u9fff]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_COMMON = frozenset(
    ("and", "any", "are", "api", "based", "can", "for", "from", "into", "its", "that", "the", "this", "tool", "with", "工具")
)

_once = lru_cache(maxsize=1 << 14)
"""A cache, because every tool is compared with every resource."""


def best_links(tool: ToolManifest, resources: Sequence[Resource]) -> tuple[KnowHubLink, ...]:
    """All links that reach the least score, the best first.

    A slug of several resources is not certain if another rule links one of them, because it came from there.
    """
    unnamed = tool.model_copy(update={"tool_slug_ids": ()})
    shared = _shared(resource.slug for resource in resources if resource.slug in tool.tool_slug_ids)
    explained = {one.slug for one in resources if one.slug in shared and link_of(unnamed, one).score >= LEAST}
    judged = ((unnamed if resource.slug in explained else tool, resource) for resource in resources)
    found = [link for said, resource in judged if (link := link_of(said, resource)).score >= LEAST]
    return tuple(sorted(found, key=lambda link: (-link.score, link.resource_id)))


def _shared(slugs: Iterable[str]) -> frozenset[str]:
    """Slugs that occur more than once."""
    return frozenset(slug for slug, count in Counter(slugs).items() if count > 1)


def link_of(tool: ToolManifest, resource: Resource) -> KnowHubLink:
    """The link with its score and reasons, even if the score is too low."""
    reasons: list[str] = []
    score = 0.0
    if resource.slug in tool.tool_slug_ids:
        score = 1.0
        reasons.append(f"its tool_slug_ids name {resource.slug!r}")
    if tool.tool_id in resource.items:
        score = 1.0
        reasons.append("toolhub_items name it")
    for worth, reason in (_by_name(tool, resource), _by_description(tool, resource), _by_category(tool, resource)):
        score += worth
        reasons += [reason] if worth else []
    return KnowHubLink(
        tool_id=tool.tool_id, resource_id=resource.resource_id, slug=resource.slug, score=min(round(score, 2), 1.0), reasons=tuple(reasons)
    )


def _by_name(tool: ToolManifest, resource: Resource) -> tuple[float, str]:
    for what, text in (("id", tool.tool_id), ("name", tool.name)):
        for which, sought in (("slug", resource.slug), ("title", resource.title)):
            if _contains(text, sought):
                return _NAMED, f"its {what} contains the {which} {sought!r}"
    return 0.0, ""


def _by_description(tool: ToolManifest, resource: Resource) -> tuple[float, str]:
    wanted = _keywords(resource.description)
    shared = sorted(wanted & _keywords(f"{tool.description} {' '.join(tool.tags)}"))
    mentioned = next((one for one in (resource.slug, resource.title) if _contains(tool.description, one)), "")
    worth = _WORDS * len(shared) / len(wanted) if len(wanted) >= _FEWEST_WORDS else 0.0
    said = [f"its description contains {mentioned!r}"] if mentioned else []
    said += [f"its description has {len(shared)} of {len(wanted)} words: {', '.join(shared[:5])}"] if worth else []
    return worth + (_MENTIONED if mentioned else 0.0), "; ".join(said)


def _by_category(tool: ToolManifest, resource: Resource) -> tuple[float, str]:
    is_same = bool(resource.category) and _words(tool.category) == _words(resource.category)
    return (_CATEGORY, f"both are of the category {resource.category!r}") if is_same else (0.0, "")


def _contains(text: str, sought: str) -> bool:
    """Whether the text contains the words in sequence. Chinese has no spaces between words."""
    wanted = _words(sought)
    if sum(len(word) * (2 if word > "\u3400" else 1) for word in wanted) < _SHORTEST:
        return False
    whole = any(one in other for one in _padded(sought) for other in _padded(text))
    return whole or (sought > "\u3400" and sought.strip() in text)


@_once
def _padded(text: str) -> tuple[str, str]:
    """The words with and without a split of camel case: `ComfyUI` may be one word or two."""
    return f" {' '.join(_words(text.lower()))} ", f" {' '.join(_words(_HUMP.sub(' ', text)))} "


@_once
def _words(text: str) -> tuple[str, ...]:
    return tuple(_RUN.findall(text.lower()))


@_once
def _keywords(text: str) -> frozenset[str]:
    """Words of three letters or more, and pairs of Chinese characters."""
    words = _words(text)
    pairs = {run[at : at + 2] for run in words if run > "\u3400" for at in range(len(run) - 1)}
    return frozenset({word for word in words if word < "\u3400" and len(word) >= _SHORTEST} | pairs) - _COMMON
