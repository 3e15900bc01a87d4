"""Makes a tool id from a description in any language."""

import hashlib
import pkgutil
import re
from collections.abc import Callable, Iterable
from functools import cache

from toolagent.core.task_requests import tool_name_from

__all__ = ["tool_name_for"]

_WORDS = 6
"""Syllables say less than words."""

_LENGTH = 64
_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_PART = re.compile(r"[a-z0-9]+|[\u3400-\u9fff\uf900-\ufaff]+")
_ASKING = re.compile(
    r"^(?:请|麻烦|帮我|帮忙|给我|为我|我们|我|想要|想|需要|要|做出|做|写|创建|制作|生成|开发|实现|构建|一个|一款|一种|一下|能够|能|可以|用来|用于|的)+"
)
_AFTER = re.compile(r"(?:的)?(?:小)?(?:工具|程序|服务)$")
_ENDS = re.compile(r"[\u3002\uff0c\uff1b\uff1a\uff01\uff1f!?,;:\n]")


def tool_name_for(*texts: str) -> str:
    """From the first text with usable words: Latin ones, and Chinese ones in pinyin; otherwise `tool_` and a hash of all texts.

    `需要一个图片压缩工具` is `tu_pian_ya_suo`, `Count the words of a text` is `count_words_text`.
    """
    named = next((name for text in texts if (name := _named(text))), None)
    return named or f"tool_{_hash(texts)}"


def _hash(texts: Iterable[str]) -> str:
    said = "\0".join(text.strip() for text in texts if text.strip())
    return hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()[:8]


def _named(text: str) -> str | None:
    if not _HAN.search(text):
        return tool_name_from(text)
    # What the tool does stands in the first sentence; what comes behind a comma is more about it.
    parts = (_PART.findall(_what(sentence)) for sentence in _ENDS.split(text.lower()))
    syllables = [syllable for part in next(filter(None, parts), ()) for syllable in _syllables(part)]
    while syllables and not syllables[0][0].isalpha():
        syllables.pop(0)
    return "_".join(syllables[:_WORDS])[:_LENGTH].rstrip("_") or None


def _what(sentence: str) -> str:
    """Without the words that ask for a tool."""
    kept = _AFTER.sub("", _ASKING.sub("", sentence.strip()))
    return kept or sentence


def _syllables(part: str) -> list[str]:
    if not _HAN.match(part):
        return [part]
    return [found for syllable in _pinyin()(part) if (found := re.sub(r"[^a-z0-9]", "", syllable.replace("ü", "v")))]


@cache
def _pinyin() -> Callable[[str], list[str]]:
    """Loaded when a text needs it: its dictionary takes a third of a second."""
    reader: Callable[[str], list[str]] = pkgutil.resolve_name("pypinyin:lazy_pinyin")
    return reader
