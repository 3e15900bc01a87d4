"""Static embeddings (WordLlama's weights) of texts whose Chinese words a dictionary (CC-CEDICT) explains in English.

Of the packages only the data are used: WordLlama itself asks a server for its tokenizer.
"""

import importlib
import importlib.util
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import threadpoolctl
from safetensors.numpy import load_file  # pyright: ignore[reportUnknownVariableType] - paths of any kind, and the result is checked
from tokenizers import Tokenizer, normalizers

from engine.registry.matching.words import HAN, chinese_words, is_empty, telling_words

Rows: TypeAlias = npt.NDArray[np.float32]

_FAR: Final = 0.2
"""Below this cosine a tool is no answer."""
_LOOKED_AT: Final = 1_000
"""So many by the signs of their numbers, which is quick; exactly only among these."""
_SENSES, _OF_SENSE = 3, 3
_ASIDE = re.compile(r"\([^)]*\)|\[[^]]*\]|CL:.*")
_LATIN = re.compile("[a-z]+")
_GRAMMAR = frozenset(["sth", "sb", "etc", "variant", "used", "old", "form", "abbr", "also", "see", "lit", "fig", "tw", "pr", "coll", "esp"])
_DEFINITION = 6
_PIECES = re.compile(f"{HAN.pattern}| *[^ {HAN.pattern[1:-1]}]+| +")
"""What no token goes beyond: ten thousand texts have half a million of them, but few are different."""


class _Token(Protocol):
    @property
    def details(self) -> list[str] | None:
        """Its entry in the dictionary; the last of it are the definition, which commas have cut."""
        ...


class _Segmenter(Protocol):
    def tokenize(self, text: str) -> list[_Token]: ...


class Vectors:
    """The `Meanings` of this machine."""

    def __init__(self) -> None:
        # A product of ten thousand small rows is done before other threads have begun.
        threadpoolctl.threadpool_limits(1)
        folder = _folder_of("wordllama")
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizers/l2_supercat_tokenizer_config.json"))
        self._tokenizer.no_padding()
        # It would begin every piece of a text as if a space were before it.
        self._tokenizer.normalizer = normalizers.Replace(" ", "▁")
        weights: npt.NDArray[np.float16] = load_file(folder / "weights/l2_supercat_256.safetensors")["embedding.weight"]
        # Twice the memory, and sums that take a fifth of the time.
        self._weights = weights.astype(np.float32)
        self._dictionary = _dictionary()
        self._gloss = lru_cache(maxsize=50_000)(self._explained)
        self._ids: list[str] = []
        self._rows: Rows = np.empty((0, self._weights.shape[1]), np.float32)
        self._signs = _signs(self._rows)

    def glosses(self, text: str) -> list[str]:
        return [gloss for word in chinese_words(text) for gloss in self._gloss(word)]

    def change(self, gone: Iterable[str], new: Sequence[tuple[str, str]]) -> None:
        left = {*gone, *(tool_id for tool_id, _ in new)}
        kept = [at for at, tool_id in enumerate(self._ids) if tool_id not in left]
        rows = self._embedded([_PIECES.findall(f" {summary}") if summary else [] for _, summary in new])
        self._ids = [*(self._ids[at] for at in kept), *(tool_id for tool_id, _ in new)]
        self._rows = np.concatenate((self._rows[kept], rows))
        self._signs = _signs(self._rows)

    def search(self, text: str, limit: int) -> list[str]:
        words = " ".join((*telling_words(text), *self.glosses(text)))
        (asked,) = self._embedded([[f" {words}"] if words else []])
        differing = np.bitwise_count(self._signs ^ _signs(asked[None, :])).sum(axis=0, dtype=np.uint16)
        near = np.flatnonzero(differing <= _nth(differing, _LOOKED_AT))
        alike = self._rows.take(near, axis=0) @ asked
        best = np.argsort(-alike)[:limit]
        return [self._ids[at] for at in near[best[alike[best] >= _FAR]].tolist()]

    def _embedded(self, texts: Sequence[Sequence[str]]) -> Rows:
        """Of texts in pieces: means of the rows of their tokens, of length 1; zeros for an empty text."""
        numbers = {piece: number for number, piece in enumerate(dict.fromkeys(chain.from_iterable(texts)))}
        encoded = self._tokenizer.encode_batch_fast([*numbers], add_special_tokens=False)
        of_pieces = np.array([self._weights[piece.ids].sum(axis=0) for piece in encoded])
        rows = np.zeros((len(texts), self._weights.shape[1]), np.float32)
        for row, pieces in zip(rows, texts, strict=True):
            if pieces:
                np.add.reduce(of_pieces.take([numbers[piece] for piece in pieces], axis=0), axis=0, out=row)
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)

    def _explained(self, word: str) -> tuple[str, ...]:
        found: list[str] = []
        for token in () if is_empty(word) else self._dictionary.tokenize(word):
            definition = _ASIDE.sub("", ",".join((token.details or [])[_DEFINITION:])).lower()
            for sense in definition.split("/")[:_SENSES]:
                if "variant of" not in sense:
                    found += [one for one in _LATIN.findall(sense) if one not in _GRAMMAR and not is_empty(one)][:_OF_SENSE]
        return tuple(dict.fromkeys(found))


def _signs(rows: Rows) -> npt.NDArray[np.uint64]:
    """One bit a number, a column for each row: where rows differ in few, they are near. Long lines are added up faster than short ones."""
    return np.ascontiguousarray(np.packbits(rows > 0, axis=1).view(np.uint64).T)


def _nth(numbers: npt.NDArray[np.uint16], most: int) -> int:
    """What so many of the numbers do not exceed, or all of them. They are small, so counting is faster than sorting."""
    return int(np.searchsorted(np.bincount(numbers).cumsum(), most))


def _dictionary() -> _Segmenter:
    # Without types of its own.
    lindera = importlib.import_module("lindera")
    made: _Segmenter = lindera.Tokenizer(lindera.load_dictionary("embedded://cc-cedict"), mode="normal")
    return made


def _folder_of(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(package)
    return Path(spec.origin).parent
