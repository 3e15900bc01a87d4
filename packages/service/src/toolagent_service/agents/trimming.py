"""Shortens long texts for a model."""

LONGEST_SHOWN = 12_000
"""Characters of one outcome in a message to a model."""

_HEAD_SHARE = 2 / 3
"""The share of the head in the shown text. Commands write first what they do, and last how it went."""

_LINE_SLACK = 200
"""A cut is moved by at most so many characters to fall between lines."""


def trimmed(text: str, path: str, longest: int = LONGEST_SHOWN) -> str:
    """The text, if it has at most `longest` characters; else its head and tail around a note that says how to read on.

    `path` is the whole text for `read_file`; offsets count characters from 0.
    """
    if len(text) <= longest:
        return text
    head_end = _end_of_line(text, 0, int(longest * _HEAD_SHARE))
    tail_start = _start_of_line(text, len(text) - (longest - head_end))
    cut = tail_start - head_end
    note = f"[… {cut:,} of {len(text):,} characters are left out here; read on with read_file, path {path!r}, offset {head_end} …]"
    return f"{text[:head_end]}\n{note}\n{text[tail_start:]}"


def window(text: str, offset: int, longest: int = LONGEST_SHOWN) -> str:
    """The text from `offset` on: at most `longest` characters, and a note where to read on."""
    if offset >= len(text):
        return "" if offset == 0 else f"[The file ends at {len(text)}: there is nothing at offset {offset}.]"
    if len(text) - offset <= longest:
        return text[offset:]
    end = _end_of_line(text, offset, offset + longest)
    return f"{text[offset:end]}\n[… {len(text) - end:,} more characters; read on with offset {end} …]"


def cut(text: str, longest: int) -> str:
    """The beginning of a longer text, with the number of its characters."""
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text):,} characters)"


def _end_of_line(text: str, start: int, end: int) -> int:
    """After `start`, and at most `end`."""
    found = text.rfind("\n", max(start, end - _LINE_SLACK), end)
    return found + 1 if found >= 0 else end


def _start_of_line(text: str, start: int) -> int:
    """At least `start`."""
    found = text.find("\n", start, start + _LINE_SLACK)
    return found + 1 if 0 <= found < len(text) - 1 else start
