"""Cuts Chinese, English and mixed text into sentences, and puts sentences together again."""

import re
from collections.abc import Iterable, Iterator
from functools import cache

import pysbd

WRAPPED = re.compile(r"(?<=[\w,;:-])[ \t]*\r?\n[ \t]*(?=[a-z])")  # a line broken inside an English sentence
CHINESE_SENTENCE = re.compile(r"[^。！？…]+[。！？…]*[”’」』）】]*|[。！？…]+[”’」』）】]*")
LATIN_END = re.compile(r"[.!?][\"')\]”’]*\s")
LONGEST = 1000  # pysbd takes quadratic time, and what has no end of sentence must not make one giant sentence
PIECE = re.compile(rf".{{1,{LONGEST}}}(?:(?<=[.!?])\s|$)|.{{1,{LONGEST}}}\s|.{{1,{LONGEST}}}")
WIDE = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef，。！？…“”‘’]")


def split(text: str) -> Iterator[str]:
    """Sentences in order, without the white space around them."""
    for line in WRAPPED.sub(" ", text).splitlines():
        for part in CHINESE_SENTENCE.findall(line):
            for sentence in split_latin(part) if LATIN_END.search(part) or len(part) > LONGEST else [part]:
                if stripped := sentence.strip():
                    yield stripped


def split_latin(part: str) -> Iterator[str]:
    for piece in PIECE.findall(part.strip()):
        yield from segmenter().segment(piece)


@cache
def segmenter() -> pysbd.Segmenter:
    return pysbd.Segmenter(language="en", clean=False)


def join(sentences: Iterable[str]) -> str:
    """A blank between sentences, except between Chinese ones."""
    text = ""
    for sentence in sentences:
        tight = not text or (WIDE.match(text[-1]) and WIDE.match(sentence[0]))
        text += sentence if tight else f" {sentence}"
    return text
