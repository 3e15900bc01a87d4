"""The part of a message that says what a tool is to do."""

from engine.registry.matching.words import is_empty, telling_words

_ENGLISH = """tool tools api apis service services something anything everything any all available find finding look looking search
 searching recommend suggest offer offering category thing stuff way able help provide hello hi hey thanks thank using related build
 create write develop implement"""
_CHINESE = """工具 接口 服务 程序 功能 推荐 推荐一下 搜索 搜 找 找找 查找 查询一下 提供 有关 相关 关于 请问 贵方 是否 哪些 有哪些
 有什么 能否 可不可以 想要 类别 分类 谢谢 你好 您好 创建 制作 开发 编写 个工具 东西"""
_ASKING = frozenset((*_ENGLISH.split(), *_CHINESE.split()))
_LONGEST = 500
"""Characters of a need: more words find nothing else, but take time."""


def telling(message: str) -> list[str]:
    """The words that say what is needed, without those that only ask; empty where there are none."""
    return [word for word in telling_words(message[:_LONGEST]) if word not in _ASKING and not is_empty(word) and not _is_letter(word)]


def _is_letter(word: str) -> bool:
    return len(word) == 1 and word.isascii()
