"""Hostile messages of chats for the rules that read them: long, nested, repeated, with odd characters."""

import time
from collections import Counter
from collections.abc import Iterator
from http import HTTPStatus

from tests.attacks.attack import Attack, Kind, Target, at_once, expect

__all__ = ["KIND"]

_MOST_BYTES = 60_000
"""Below what a message may have by the settings."""
_ANSWER_S = 10.0
_PIECES = (
    "9*",
    "(",
    "-",
    "9**9**",
    "a",
    " ",
    "\n",
    '"',
    "`",
    ".",
    "[{",
    '{"a": ',
    "a=b ",
    "yes no ",
    "the second one ",
    "compress or convert or ",
    "a tool that does x and ",
    "https://a.b/",
    "2024-01-01 ",
    "工具",
    "\u202e工\u202d",
    "e\u0301\u0301\u0301",
    "\U0001f469\u200d\U0001f467",
    "<script>",
)
_AROUND = (("", ""), ("what is ", ""), ("build me a tool ", " x"), ("call echo with ", ""))


def _messages(is_long: bool) -> Iterator[str]:
    for start, end in _AROUND if is_long else _AROUND[:1]:
        for piece in _PIECES:
            yield f"{start}{piece * (_MOST_BYTES // len(piece.encode()))}{end}"


def messages(target: Target) -> str:
    """Each message is answered in time, in a chat of its own."""
    told, slowest = Counter[int](), 0.0
    for number, message in enumerate(_messages(target.is_long)):
        began = time.monotonic()
        answer = target.post("/chat", {"chat_id": f"odd-{time.monotonic_ns()}", "message": message})
        took = time.monotonic() - began
        told[answer.status_code] += 1
        slowest = max(slowest, took)
        expect(took < _ANSWER_S, f"message {number} ({message[:30]!r}…) took {took:.1f} s")
        expect(answer.status_code in {HTTPStatus.OK, HTTPStatus.UNPROCESSABLE_ENTITY}, f"HTTP {answer.status_code}: {answer.text[:200]}")
    return f"{_counted(told)}; {slowest:.1f} s at most"


def crowd(target: Target) -> str:
    """Many callers in one chat: each is answered, or told to wait."""
    chat_id, count = f"crowd-{time.monotonic_ns()}", 100 if target.is_long else 20
    told = Counter(at_once(lambda: target.post("/chat", {"chat_id": chat_id, "message": "hello"}).status_code, count, 50))
    expect(set(told) <= {200, 409, 429, 503}, str(dict(told)))
    answer = target.post("/chat", {"chat_id": chat_id, "message": "is it done?"})
    expect(answer.is_success, f"HTTP {answer.status_code} after them: {answer.text[:200]}")
    return _counted(told)


def _counted(told: Counter[int]) -> str:
    return ", ".join(f"{number}× {status}" for status, number in told.items())


KIND = Kind(
    "chats",
    (
        Attack("messages", "96 messages of 60,000 bytes, made for the rules that read them", messages, is_load=True),
        Attack("crowd", "50 callers in one chat at once", crowd, is_load=True),
    ),
)
