"""Why a tool was found: the words of a need that it says itself."""

import tantivy

from engine.registry.matching.texts import text_of
from engine.registry.matching.words import telling_words, words_of
from toolagent.contracts.manifest import ToolManifest

_STEMMER = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).filter(tantivy.Filter.stemmer("english")).build()


def words_in_common(need: str, tool: ToolManifest) -> tuple[str, ...]:
    """Words of the need in the order in which they are said; of English words the stem counts."""
    text = text_of(tool)
    said = {_stem(word) for word in words_of(f"{text.summary} {text.params}")}
    return tuple(word for word in telling_words(need) if _stem(word) in said)


def _stem(word: str) -> str:
    return next(iter(_STEMMER.analyze(word)), word)
