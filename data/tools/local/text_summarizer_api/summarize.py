"""Picks the sentences of a text that say most of it (TextRank), and keeps them in their order."""

import math
import re
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import rjieba
from msgspec import Meta, Struct
from sumy.models.dom import ObjectDocumentModel, Paragraph, Sentence
from sumy.nlp.stemmers import Stemmer, null_stemmer
from sumy.summarizers.text_rank import TextRankSummarizer
from sumy.utils import get_stop_words

from sentences import join, split

BLOCK = 120  # sentences that are compared with each other at once: TextRank takes quadratic time
FINALISTS = 800
CHINESE = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
LATIN_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")

Language = Literal["zh", "en"]


class Params(Struct, forbid_unknown_fields=True):
    text: Annotated[str, Meta(min_length=1, max_length=500_000)]
    max_length: Annotated[int, Meta(ge=20, le=20_000)] = 500
    language: Literal["auto", Language] = "auto"


def run(params: Params, folder: Path) -> dict[str, Any]:
    """A summary of at most `max_length` characters. A text that is not longer is returned unchanged."""
    text = params.text
    language = dominant(text) if params.language == "auto" else params.language
    if not text.strip():
        chosen, summary = [], ""
    elif len(text) <= params.max_length:
        chosen, summary = list(split(text)), text
    else:
        chosen = choose(list(dict.fromkeys(split(text))), params.max_length, language)
        summary = join(chosen)
    return {
        "summary": summary,
        "language": language,
        "sentence_count": len(chosen),
        "original_length": len(text),
        "summary_length": len(summary),
    }


def dominant(text: str) -> Language:
    """Chinese when there are more Chinese characters than Latin words."""
    return "zh" if len(CHINESE.findall(text)) > len(LATIN_WORD.findall(text)) else "en"


def choose(sentences: list[str], max_length: int, language: Language) -> list[str]:
    """The best sentences that fit; the beginning of the best one when none does."""
    candidates = finalists(sentences, max_length, language) or sentences[:1]
    chosen = best(candidates, max_length, len(candidates), language)
    if chosen:
        return chosen
    first = best(candidates, max(map(len, candidates)), 1, language) or candidates[:1]
    return [first[0][: max_length - 1].rstrip() + "…"]


def finalists(sentences: list[str], max_length: int, language: Language) -> list[str]:
    """Narrows a long text down block by block, to three times the wanted length."""
    if len(sentences) <= BLOCK:
        return sentences
    blocks = [sentences[start : start + BLOCK] for start in range(0, len(sentences), BLOCK)]
    length, count = 3 * max_length // len(blocks), max(1, FINALISTS // len(blocks))
    return [sentence for block in blocks for sentence in best(block, max(length, max(map(len, block))), count, language)]


def best(sentences: list[str], max_length: int, max_count: int, language: Language) -> list[str]:
    """At most `max_count` sentences of together at most `max_length` characters, the best by TextRank, in their order."""
    words = Words(language)
    said = [Sentence(text, words) for text in sentences if words.to_words(text)]
    if not said:
        return []
    summarizer = Ranking(Stemmer("english") if language == "en" else null_stemmer)
    summarizer.stop_words = stop_words()
    picked = summarizer(ObjectDocumentModel([Paragraph(said)]), Budget(max_length, max_count))
    return [str(sentence) for sentence in picked]


class Ranking(TextRankSummarizer):
    """TextRank on sets of words, which is much faster. Without edges from a sentence to itself, which favour isolated sentences."""

    def _to_words_set(self, sentence: Sentence) -> frozenset[str]:
        return frozenset(super()._to_words_set(sentence))

    @staticmethod
    def _rate_sentences_edge(words1: frozenset[str], words2: frozenset[str]) -> float:
        shared = 0 if words1 is words2 else len(words1 & words2)
        return shared / max(1.0, math.log(len(words1)) + math.log(len(words2))) if shared else 0.0


class Budget:
    """Takes rated sentences, best first, as long as they fit."""

    def __init__(self, max_length: int, max_count: int) -> None:
        self.max_length = max_length
        self.max_count = max_count

    def __call__(self, rated: list[Any]) -> list[Any]:
        taken: list[Any] = []
        used = 0
        for info in rated:
            length = len(str(info.sentence))
            if used + length <= self.max_length:
                taken.append(info)
                used += length + 1
            elif used > self.max_length * 0.7:
                break
            if len(taken) == self.max_count:
                break
        return taken


class Words:
    """The tokenizer for sumy. Sumy's own tokenizers need data from the network."""

    def __init__(self, language: Language) -> None:
        self.language = language

    def to_words(self, text: str) -> tuple[str, ...]:
        if self.language == "en":
            return tuple(re.findall(r"\w[\w'-]*", text))
        return tuple(word for word in rjieba.cut(text) if any(character.isalnum() for character in word))


@cache
def stop_words() -> frozenset[str]:
    return get_stop_words("chinese") | get_stop_words("english")
