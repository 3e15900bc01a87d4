"""Splits Chinese and English texts into words, for the index and its queries."""

import importlib
import re
from collections.abc import Iterable
from functools import cache, lru_cache
from itertools import chain
from types import ModuleType

WORDS_KNOWN = 10_000
"""Size of caches by word: texts have many words, but few distinct ones."""
BREAK = "\0"
"""Separates texts that are cut together; a piece of its own."""
_PIECE = re.compile(r"""\0|[^\s\0_:/.\-,;!?()\[\]{}<>|='"`，。、；：！？（）《》“”‘’【】]+""")
"""A piece: words never cross its borders."""
_BY_SIGNS = (
    (re.compile(r"(?<=[A-Za-z])\+\+"), "pp "),
    (re.compile(r"(?<=[A-Za-z])[#＃](?![A-Za-z0-9])"), "sharp "),
    (re.compile(r"\.NET(?![A-Za-z])|(?<![A-Za-z0-9.])\.[Nn]et(?![A-Za-z])"), " dotnet "),
)
"""`C++`, `F#`, `ASP.NET`: signs that are read as letters. `example.net` is an address."""
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_ACRONYM = re.compile(r"(?<=[A-Z])(?=[A-Z](?!to(?![a-z]))(?:[a-z]{2}|[a-z][A-Z]))")
_CAMEL = re.compile(rf"{_HUMP.pattern}|{_ACRONYM.pattern}|(?<=[A-Z])(?=to[A-Z])")
"""`LoadImage`, `NASATool`, `HTMLToPDF`, `USDtoEUR`; `PDFs` is one word."""
_ADDRESS = re.compile(r"https?://[^\s\u3000-\u9fff\uff00-\uffef\"'<>]+", re.IGNORECASE)
_SUM = re.compile(r"\d\s*[*×÷+^]\s*\d")
_COUNTED = re.compile(r"\d+|[这那每哪]?[一二两三四五六七八九十几]?[个张段份篇封句家款条页首幅本]话?")
"""Numbers and counters such as `这段`, `两张`, `一句话`, which name no thing."""
HAN = re.compile(r"[\u3400-\u9fff]")

# Words that express a wish, not its content. They are rare in short descriptions, and would weigh too much.
_ENGLISH = """a about an and any are as at be been but by can could did do does don for from get give had has have he her him his how i if
 in into is it its just let like make me more most my need no not of on one ones only or our out please put really s she should so some
 somebody something t tell than that the their them then there these they this those to too up us use used want was we were what when
 where which who whom whose why will with would you your"""
_CHINESE = """的 了 吗 呢 吧 啊 是 在 有 我 你 他 她 它 我们 你们 他们 大家 这 那 这个 那个 这些 那些 这张 这段 这份 这家 这款 这句 这封 一
 一个 一下 一些 一段 一份 一点 几 几个 几句 个 张 份 段 封 句 把 被 给 帮 帮我 请 要 想 想要 需要 不要 能 能不能 可以 会 怎么
 怎样 如何 什么 哪 哪里 哪个 谁 多少 是不是 有没有 还 还有 就 都 也 和 与 或 及 并 到 从 对 为 上 下 里 中 去 来 做 弄 看 看看
 看不懂 好 很 太 更 最 再 又 不 没 没有 没法 现在 今天 明天 昨天 时候 让 用 比 等 以 其 之 地 得 着 过 成 变成 出 出来"""
_EMPTY = frozenset((*_ENGLISH.split(), *_CHINESE.split()))


def cut(text: str) -> list[str]:
    """The pieces of a text, in order: Chinese words without the shorter words in them, everything else as written.

    Callers process each distinct piece once.
    """
    if "++" in text or "#" in text or "＃" in text or ".NET" in text or ".net" in text or ".Net" in text:
        for signs, read in _BY_SIGNS:
            text = signs.sub(read, text)
    pieces = _PIECE.findall(text)
    return pieces if text.isascii() else [word for word in _jieba().cut(" ".join(pieces)) if word != " "]


def words_of(text: str) -> list[str]:
    """All words in lower case: Chinese words with the shorter ones in them, and both parts of `LoadImage` and `load_image`."""
    return [*chain.from_iterable(map(words_in, cut(text)))]


def wholes_of(text: str) -> list[str]:
    """Words that are split after an acronym, unsplit: `OAuth` and `QRCode` are also written as one word.

    They help to find tools, but do not count as further words of a need.
    """
    if _ACRONYM.search(text) is None:
        return []
    parts = [part for piece in cut(_ADDRESS.sub(" ", text)) for part in _HUMP.split(piece)]
    return [part.lower() for part in parts if part.isalnum() and _ACRONYM.search(part)]


@lru_cache(maxsize=WORDS_KNOWN)
def words_in(piece: str) -> tuple[str, ...]:
    """The words of one piece of a cut text."""
    small = plain(piece)
    # Do not cut a Chinese word again: without its neighbours, the result may differ.
    wholes: Iterable[str] = _jieba().cut(small) if piece.isascii() or small != piece else (piece,)
    return tuple(word for whole in wholes for word in (*_shorter(whole), whole) if word.isalnum())


def plain(piece: str) -> str:
    return _CAMEL.sub(" ", piece).lower()


def telling_words(text: str) -> list[str]:
    """The words of a need without empty ones, each once; all words if nothing else is left."""
    # Addresses and sums are replaced by a word for what they are.
    words = list(dict.fromkeys(words_of(_SUM.sub(" calculate ", _ADDRESS.sub(" page ", text)).replace("%", " percent "))))
    return [word for word in words if not is_empty(word)] or words


def is_empty(word: str) -> bool:
    return word in _EMPTY or _COUNTED.fullmatch(word) is not None


def _shorter(word: str) -> Iterable[str]:
    """Words of two and three characters in a longer one. The library's own search would cut the text again."""
    sizes = () if word.isascii() else range(2, min(len(word), 4))
    return filter(_jieba().has_word, [word[at : at + size] for size in sizes for at in range(len(word) - size + 1)])


@cache
def _jieba() -> ModuleType:
    # Imported late: its dictionary takes 0.1 to 0.2 s, which most commands do not need.
    return importlib.import_module("rjieba")
