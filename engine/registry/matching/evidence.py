"""Why a tool was found: the words that it shares with a need."""

import re

import tantivy

from engine.registry.matching.texts import text_of
from engine.registry.matching.words import HAN, telling_words, wholes_of, words_of
from toolagent.contracts.manifest import ToolManifest

_BRITISH = re.compile(r"(?<=\w{3})is(?=(?:e|es|ed|er|ers|ing|ation|ations)$)")
_STEMMER = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).filter(tantivy.Filter.stemmer("english")).build()


def words_in_common(need: str, tool: ToolManifest) -> tuple[str, ...]:
    """Words of the need, in order, that the tool's summary has. English words are compared by stem.

    Single Chinese characters are ignored: each is part of many words.
    """
    summary = text_of(tool).summary
    said = {_stem(word) for word in (*words_of(summary), *wholes_of(summary))}
    return tuple(word for word in telling_words(need) if _stem(word) in said and not HAN.fullmatch(word))


def _stem(word: str) -> str:
    # `summarise` is `summarize`.
    return next(iter(_STEMMER.analyze(_BRITISH.sub("iz", word))), word)
