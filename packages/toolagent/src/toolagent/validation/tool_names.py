"""Makes a tool id from a description in any language."""

import hashlib
import pkgutil
import re
from collections.abc import Callable, Iterable
from functools import cache
from itertools import chain

from toolagent.core.task_requests import tool_name_from

__all__ = ["tool_name_for"]

_WORDS = 4
_LENGTH = 64
_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_ENDS = re.compile(r"[\u3002\uff0c\uff1b\uff1a\uff01\uff1f!?,;:\n]")
_KIND = re.compile(r"(?:工具|程序|服务|脚本|接口)$")
_ASKED = """请 请问 麻烦 帮 帮我 帮忙 给 给我 为 为我 我 我们 你 你们 您 想 想要 要 需要 做 做出 做个 写 写个 写一个 创建 制作
 生成 开发 实现 构建 新建 编写 建 一个 一款 一种 一下 一份 一些 个 款 种 份 些 能 能够 可以 用来 用于 会 的 地 得 了 吧 吗 呢 啊
 把 将 成 到 和 与 或 及 并 小 新 工具 程序 服务 脚本 接口 小工具 小程序 api"""
_ASKING = frozenset(_ASKED.split())
"""Words that ask for a tool, or only connect others."""


def tool_name_for(*texts: str) -> str:
    """The name from the first text with usable words: Latin words, and Chinese words in pinyin. Otherwise `tool_` and a hash of all texts.

    `需要一个图片压缩工具` is `tupian_yasuo`, `Count the words of a text` is `count_words_text`.
    """
    if named := next((name for text in texts if (name := _named(text))), None):
        return named
    said = "\0".join(text.strip() for text in texts if text.strip())
    return f"tool_{hashlib.sha256(said.encode('utf-8', 'replace')).hexdigest()[:8]}"


def _named(text: str) -> str | None:
    if not _HAN.search(text):
        return tool_name_from(text)
    # The first sentence with usable words says what the tool does. Later parts, also after a comma, are details.
    cut, sentences = _of_package("rjieba:cut"), _ENDS.split(text.lower())
    telling = ([word for word in cut(_KIND.sub("", sentence.strip())) if word not in _ASKING] for sentence in sentences)
    said: Iterable[Iterable[str]] = chain(telling, map(cut, sentences))
    names = next((found for words in said if (found := _latin(words))), list[str]())
    return "_".join(names[:_WORDS])[:_LENGTH].rstrip("_") or None


def _latin(words: Iterable[str]) -> list[str]:
    """The words that can be parts of an id. The first one begins with a letter."""
    spelt = ("".join(_of_package("pypinyin:lazy_pinyin")(word)).replace("ü", "v") for word in words)
    names = [name for one in spelt if (name := re.sub(r"[^a-z0-9]", "", one))]
    while names and not names[0][0].isalpha():
        names.pop(0)
    return names


@cache
def _of_package(function: str) -> Callable[[str], Iterable[str]]:
    """Loads a function on demand, because its dictionary takes a third of a second."""
    found: Callable[[str], Iterable[str]] = pkgutil.resolve_name(function)
    return found
