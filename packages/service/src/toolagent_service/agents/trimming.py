"""Showing a model a long text: its beginning and its end, and how to read what lies between."""

LONGEST_SHOWN = 12_000
"""Characters of one outcome that a model is shown."""

_HEAD_SHARE = 2 / 3
"""Of what is shown. Commands say what they do first and how it went last."""

_LINE_SLACK = 200
"""A cut is moved by at most so many characters to fall between lines."""


def trimmed(text: str, path: str, longest: int = LONGEST_SHOWN) -> str:
    """`text` where it has at most `longest` characters, else head and tail around a note that names the call which reads on.

    `path` is where the whole text can be read with `read_file`; offsets count characters from 0.
    """
    if len(text) <= longest:
        return text
    head_end = _end_of_line(text, 0, int(longest * _HEAD_SHARE))
    tail_start = _start_of_line(text, len(text) - (longest - head_end))
    cut = tail_start - head_end
    note = f"[… {cut:,} of {len(text):,} characters are left out here; read on with read_file, path {path!r}, offset {head_end} …]"
    return f"{text[:head_end]}\n{note}\n{text[tail_start:]}"


def window(text: str, offset: int, longest: int = LONGEST_SHOWN) -> str:
    """What `read_file` shows from `offset` on: at most `longest` characters, and where to read on when there are more."""
    if offset >= len(text):
        return "" if offset == 0 else f"[The file ends at {len(text)}: there is nothing at offset {offset}.]"
    if len(text) - offset <= longest:
        return text[offset:]
    end = _end_of_line(text, offset, offset + longest)
    return f"{text[offset:end]}\n[… {len(text) - end:,} more characters; read on with offset {end} …]"


def _end_of_line(text: str, start: int, end: int) -> int:
    """After `start`, and at most `end`."""
    found = text.rfind("\n", max(start, end - _LINE_SLACK), end)
    return found + 1 if found >= 0 else end


def _start_of_line(text: str, start: int) -> int:
    """At least `start`."""
    found = text.find("\n", start, start + _LINE_SLACK)
    return found + 1 if 0 <= found < len(text) - 1 else start
