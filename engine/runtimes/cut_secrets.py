"""Masks the part of a secret that a cut has left at the end or at the beginning of a text."""

import re
from collections.abc import Iterable

_MASK = "***"
_LEAST = 4
"""Characters. A shorter part occurs in almost every text."""

_CUT_END = re.compile("(?:…|\\s?\\[… [^\\]\n]{1,60}\\])\\Z")
_CUT_START = re.compile("\\A\\[… [^\\]\n]{1,60}\\]\n")
"""The notes of our cuts, as in `[… 7 more characters left out]`."""

_HALF = "\N{REPLACEMENT CHARACTER}"
"""What decoding makes of a character that was cut in two."""


def without_parts(text: str, secrets: Iterable[str]) -> str:
    """The text without parts of secrets beside the note of a cut. Texts without such a note stay as they are."""
    if text.endswith(("…", "]")) and (note := _CUT_END.search(text)):
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
    at = text.find(secret[:_LEAST], max(0, len(text) - len(secret))) if len(secret) >= _LEAST else -1
    while at >= 0 and not secret.startswith(text[at:]):
        at = text.find(secret[:_LEAST], at + 1)
    return at if at >= 0 else len(text)


def _ends_at(text: str, secret: str) -> int:
    """The length of the longest end of the secret with which the text begins."""
    last = secret[-_LEAST:]
    at = text.rfind(last, 0, len(secret)) if len(secret) >= _LEAST else -1
    while at >= 0 and not secret.endswith(text[: at + _LEAST]):
        at = text.rfind(last, 0, at + _LEAST - 1)
    return at + _LEAST if at >= 0 else 0
