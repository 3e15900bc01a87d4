"""Masks the part of a secret that a cut has left at the end or at the beginning of a text."""

import re
from collections.abc import Iterable

_MASK = "***"
_LEAST = 4
"""Characters. A shorter part occurs in almost every text."""

_TRIES = 100
"""A text that has the same characters more often is masked from the first place on: trying all places may take minutes."""

_CUT_END = re.compile("(?:…|\\s?\\[… [^\\]\n]{1,60}\\])\\Z")
_CUT_START = re.compile("\\A\\[… [^\\]\n]{1,60}\\]\n")
"""The notes of our cuts, as in `[… 7 more characters left out]`."""

_LONGEST_NOTE = 100

_HALF = "\N{REPLACEMENT CHARACTER}"
"""What decoding makes of a character that was cut in two."""


def without_parts(text: str, secrets: Iterable[str]) -> str:
    """The text without parts of secrets beside the note of a cut. Texts without such a note stay as they are."""
    if text.endswith(("…", "]")) and (note := _CUT_END.search(text, max(0, len(text) - _LONGEST_NOTE))):
        kept = text[: note.start()].rstrip(_HALF)
        at = min((_begun_at(kept, secret) for secret in secrets), default=len(kept))
        text = text if at == len(kept) else f"{kept[:at]}{_MASK}{note[0]}"
    if text.startswith("[…") and (note := _CUT_START.search(text)):
        kept = text[note.end() :].lstrip(_HALF)
        to = max((_ends_at(kept, secret) for secret in secrets), default=0)
        text = text if not to else f"{note[0]}{_MASK}{kept[to:]}"
    return text


def _begun_at(text: str, secret: str) -> int:
    """Where the longest beginning of the secret stands at the end of the text; the text's length if there is none."""
    if len(secret) < _LEAST:
        return len(text)
    first = at = text.find(secret[:_LEAST], max(0, len(text) - len(secret)))
    for _ in range(_TRIES):
        if at < 0 or secret.startswith(text[at:]):
            return at if at >= 0 else len(text)
        at = text.find(secret[:_LEAST], at + 1)
    return first


def _ends_at(text: str, secret: str) -> int:
    """The length of the longest end of the secret with which the text begins."""
    if len(secret) < _LEAST:
        return 0
    last = secret[-_LEAST:]
    first = at = text.rfind(last, 0, len(secret))
    for _ in range(_TRIES):
        if at < 0 or secret.endswith(text[: at + _LEAST]):
            return at + _LEAST if at >= 0 else 0
        at = text.rfind(last, 0, at + _LEAST - 1)
    return first + _LEAST
