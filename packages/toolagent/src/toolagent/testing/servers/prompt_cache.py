"""What a prompt costs, estimated: a token for four characters, and of a prompt seen before the part up to a cache mark."""

import hashlib
import json

from toolagent.testing.servers.requests import MessagesRequest

__all__ = ["PromptCache", "PromptTokens", "tokens_of"]

_CHARACTERS = 4
_LOOK_BACK = 20
"""So many blocks before a mark the API looks for what is cached."""

PromptTokens = tuple[int, int, int]
"""Tokens that are new, written to the cache, read from it."""


def tokens_of(text: str) -> int:
    return -(-len(text) // _CHARACTERS)


class PromptCache:
    """As the API's, but without its least length and its expiry, and for one process."""

    def __init__(self) -> None:
        self._known: set[bytes] = set()

    def asked(self, request: MessagesRequest) -> PromptTokens:
        """What the prompt costs; what its marks say is kept from now on."""
        ends, marks = _prefixes(request)
        total = ends[-1][1] if ends else 0
        if not marks:
            return total, 0, 0
        read = max((self._read(ends, mark) for mark in marks), default=0)
        self._known.update(ends[mark][0] for mark in marks)
        last = ends[marks[-1]][1]
        return total - last, last - read, read

    def _read(self, ends: list[tuple[bytes, int]], mark: int) -> int:
        near = ends[max(0, mark - _LOOK_BACK) : mark + 1]
        return max((tokens for digest, tokens in near if digest in self._known), default=0)


def _prefixes(request: MessagesRequest) -> tuple[list[tuple[bytes, int]], list[int]]:
    """For each block what the prompt is up to its end, and how many tokens; and at which blocks there are marks."""
    digest, characters = hashlib.sha256(request.model.encode()), 0
    ends: list[tuple[bytes, int]] = []
    marks: list[int] = []
    for place, (block, marked) in enumerate(request.parts()):
        text = json.dumps(block, ensure_ascii=False)
        digest.update(text.encode())
        characters += len(text)
        ends.append((digest.digest(), -(-characters // _CHARACTERS)))
        if marked:
            marks.append(place)
    return ends, marks
