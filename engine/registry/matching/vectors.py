"""Static embeddings (WordLlama's weights) of texts, with English glosses of Chinese words from a dictionary (CC-CEDICT).

Only the data of the package WordLlama are used: its code downloads a tokenizer.
"""

import importlib
import importlib.util
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import threadpoolctl
from safetensors.numpy import load_file  # pyright: ignore[reportUnknownVariableType] - paths of any kind, and the result is checked
from tokenizers import Tokenizer, normalizers

from engine.registry.matching.texts import CutTexts
from engine.registry.matching.words import BREAK, HAN, WORDS_KNOWN, cut, is_empty, plain, telling_words

Rows: TypeAlias = npt.NDArray[np.float32]

_FAR: Final = 0.2
"""Lowest cosine of a match."""
_LOOKED_AT: Final = 1_000
"""Candidates found quickly by the signs of their components; only these are compared exactly."""
_SENSES, _OF_SENSE = 3, 3
_ASIDE = re.compile(r"\([^)]*\)|\[[^]]*\]|CL:.*")
_LATIN = re.compile("[a-z]+")
_GRAMMAR = frozenset(["sth", "sb", "etc", "variant", "used", "old", "form", "abbr", "also", "see", "lit", "fig", "tw", "pr", "coll", "esp"])
_DEFINITION = 6


class _Token(Protocol):
    @property
    def details(self) -> list[str] | None:
        """The dictionary entry, split at commas. Its last items are the definition."""
        ...


class _Segmenter(Protocol):
    def tokenize(self, text: str) -> list[_Token]: ...


class Vectors:
    """The `Meanings` of this machine."""

    def __init__(self) -> None:
        # One thread: the product of ten thousand small rows ends before other threads start.
        threadpoolctl.threadpool_limits(1)
        folder = _folder_of("wordllama")
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizers/l2_supercat_tokenizer_config.json"))
        self._tokenizer.no_padding()
        # The default normalizer would put a space before every piece.
        self._tokenizer.normalizer = normalizers.Replace(" ", "▁")
        weights: npt.NDArray[np.float16] = load_file(folder / "weights/l2_supercat_256.safetensors")["embedding.weight"]
        self._weights = weights
        self._dictionary = _dictionary()
        self.gloss = lru_cache(maxsize=WORDS_KNOWN)(self._explained)
        self._ids: list[str] = []
        self._rows: Rows = np.empty((0, self._weights.shape[1]), np.float32)
        self._signs = _signs(self._rows)

    def change(self, gone: Iterable[str], new: CutTexts) -> None:
        left = {*gone, *new.ids}
        kept = [at for at, tool_id in enumerate(self._ids) if tool_id not in left]
        rows = self._embedded(new)
        self._ids = [*(self._ids[at] for at in kept), *new.ids]
        self._rows = np.concatenate((self._rows[kept], rows)) if kept else rows
        self._signs = _signs(self._rows)

    def search(self, text: str, limit: int) -> list[str]:
        words = [*telling_words(text), *filter(None, map(self.gloss, cut(text)))]
        if not words:
            return []
        # As one unit: many units take five times as long.
        (asked,) = _of_length_one(self._sums([" ".join(words)]))
        differing = np.bitwise_count(self._signs ^ _signs(asked[None, :])).sum(axis=0, dtype=np.uint16)
        near = np.flatnonzero(differing <= _nth(differing, _LOOKED_AT))
        alike = self._rows.take(near, axis=0) @ asked
        best = np.argsort(-alike)[:limit]
        return [self._ids[at] for at in near[best[alike[best] >= _FAR]].tolist()]

    def _embedded(self, texts: CutTexts) -> Rows:
        """Vectors of the summaries: the sums of their tokens' rows, with length 1; zeros for an empty summary."""
        of_pieces = self._sums([*map(self._meant, texts.pieces)])
        of_pieces[texts.pieces[BREAK]] = 0
        numbers = np.array(texts.numbers, np.intp)
        rows = np.zeros((len(texts.ids), self._weights.shape[1]), np.float32)
        ones = np.ones(max((ends.summary - ends.begin for ends in texts.ends), default=0), np.float32)
        for row, ends in zip(rows, texts.ends, strict=True):
            if size := ends.summary - ends.begin:
                np.dot(ones[:size], of_pieces.take(numbers[ends.begin : ends.summary], axis=0), out=row)
        return _of_length_one(rows)

    def _sums(self, units: Sequence[str]) -> Rows:
        """The sum of the tokens' rows, for each unit."""
        # Sequential: for short texts, threads cost more than they save.
        encoded = [self._tokenizer.encode(f" {unit}", add_special_tokens=False).ids for unit in units]
        return np.array([self._weights.take(ids, axis=0).sum(axis=0, dtype=np.float32) for ids in encoded])

    def _meant(self, piece: str) -> str:
        return f"{self.gloss(piece)} {piece}".strip() if HAN.match(piece) else plain(piece)

    def _explained(self, word: str) -> str:
        found: list[str] = []
        for token in self._dictionary.tokenize(word) if HAN.match(word) and not is_empty(word) else ():
            definition = _ASIDE.sub("", ",".join((token.details or [])[_DEFINITION:])).lower()
            for sense in definition.split("/")[:_SENSES]:
                if "variant of" not in sense:
                    found += [one for one in _LATIN.findall(sense) if one not in _GRAMMAR and not is_empty(one)][:_OF_SENSE]
        return " ".join(dict.fromkeys(found))


def _of_length_one(rows: Rows) -> Rows:
    rows /= np.maximum(np.sqrt(np.einsum("ij,ij->i", rows, rows)), 1e-9)[:, None]
    return rows


def _signs(rows: Rows) -> npt.NDArray[np.uint64]:
    """Signs as bits, one column per row: near rows differ in few bits. Transposed, because long lines are summed faster."""
    return np.ascontiguousarray(np.packbits(rows > 0, axis=1).view(np.uint64).T)


def _nth(numbers: npt.NDArray[np.uint16], most: int) -> int:
    """The value that at least `most` of the numbers do not exceed. Counting is faster than sorting, because they are small."""
    return int(np.searchsorted(np.bincount(numbers).cumsum(), most))


def _dictionary() -> _Segmenter:
    # The package has no types.
    lindera = importlib.import_module("lindera")
    made: _Segmenter = lindera.Tokenizer(lindera.load_dictionary("embedded://cc-cedict"), mode="normal")
    return made


def _folder_of(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(package)
    return Path(spec.origin).parent
